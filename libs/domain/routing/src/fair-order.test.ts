import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AdmissionEffect } from './admission-effect.js';
import { createAdmissionState, noStartTrouble, type AdmissionRequest, type AdmissionState } from './admission-state.js';
import { admit } from './admit.js';
import { release } from './leases.js';
import { syncReplicas } from './sync-replicas.js';

const SLOTS = 3;

function fullState(queueMax: number): AdmissionState {
  const state = createAdmissionState({ endpointId: 'ep_1', queueMax, queueWaitMsMax: 1e9, leaseTtlMs: 1e9 }, 0);
  syncReplicas(state, { ready: [{ replicaId: 'a', modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'vllm', servedModel: 'm', slots: SLOTS }], draining: [], trouble: noStartTrouble }, 0);
  return state;
}

const request = (name: string, changes: Partial<AdmissionRequest>): AdmissionRequest => ({ requestId: `req_${name}`, leaseId: `lease_${name}`, gatewayId: 'g', organisationId: 'org_1', excludedReplicaIds: [], waitMsMax: 1e9, ...changes });
const granted = (effects: readonly AdmissionEffect[]) => effects.flatMap((effect) => (effect.kind === 'grant' ? [effect.leaseId] : []));

describe('who is next', () => {
  test('two tenants that always wait share by weight in tokens, whatever their requests cost and through whichever gateway they come', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 4_000 }), fc.integer({ min: 1, max: 4_000 })), { minLength: 20, maxLength: 20 }), (costs) => {
      const state = fullState(1_000);
      const cost = new Map<string, number>();
      const served: Record<string, number> = { heavy: 0, light: 0 };
      let running: string[] = [];
      let made = 0;
      const arrive = (tenant: 'heavy' | 'light'): void => {
        const pair = costs[made % costs.length] ?? [1, 1];
        const workTokens = tenant === 'heavy' ? pair[0] : pair[1];
        made += 1;
        const name = `${tenant}_${made}`;
        cost.set(`lease_${name}`, workTokens);
        running.push(...granted(admit(state, request(name, { organisationId: tenant, weight: tenant === 'heavy' ? 4 : 1, workTokens, gatewayId: `g${made % 2}` }), 0)));
      };
      for (let count = 0; count < 20; count += 1) for (const tenant of ['light', 'heavy'] as const) arrive(tenant);
      const counted = new Set(running);
      for (let turn = 0; turn < 2_000; turn += 1) {
        const [first] = running;
        if (first === undefined) throw new Error('nothing runs');
        const next = granted(release(state, [{ leaseId: first, outcome: 'ok' }], 0).effects);
        running = [...running.slice(1), ...next];
        for (const leaseId of next) {
          if (counted.has(leaseId)) continue;
          const tenant = leaseId.includes('heavy') ? 'heavy' : 'light';
          served[tenant] = (served[tenant] ?? 0) + (cost.get(leaseId) ?? 0);
          arrive(tenant);
        }
      }
      const total = (served['heavy'] ?? 0) + (served['light'] ?? 0);
      expect(Math.abs((served['heavy'] ?? 0) / total - 0.8)).toBeLessThan(0.05);
    }), { numRuns: 20 });
  });

  test('a higher class goes first, and a full queue gives up the lowest class for it', () => {
    const state = fullState(2);
    for (let count = 0; count < SLOTS; count += 1) admit(state, request(`running_${count}`, {}), 0);
    admit(state, request('batch_1', { priority: 'batch' }), 0);
    admit(state, request('batch_2', { priority: 'batch' }), 0);
    expect(admit(state, request('paid', { priority: 'paid' }), 0)).toMatchObject([{ kind: 'refuse', requestId: 'req_batch_2', refusal: { code: 'queue_full' } }]);
    expect(admit(state, request('batch_3', { priority: 'batch' }), 0)).toMatchObject([{ kind: 'refuse', requestId: 'req_batch_3' }]);
    expect(granted(release(state, [{ leaseId: 'lease_running_0', outcome: 'ok' }], 0).effects)).toEqual(['lease_paid']);
    expect(granted(release(state, [{ leaseId: 'lease_running_1', outcome: 'ok' }], 0).effects)).toEqual(['lease_batch_1']);
  });

  test('a request that the KV cache has no room for waits, and long contexts are few', () => {
    const state = createAdmissionState({ endpointId: 'ep_1', queueMax: 9, queueWaitMsMax: 1e9, leaseTtlMs: 1e9 }, 0);
    syncReplicas(state, { ready: [{ replicaId: 'a', modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'vllm', servedModel: 'm', slots: 9, kvTokens: 1_000 }], draining: [], trouble: noStartTrouble }, 0);
    expect(granted(admit(state, request('1', { workTokens: 300 }), 0))).toEqual(['lease_1']);
    expect(granted(admit(state, request('2', { workTokens: 300 }), 0))).toEqual(['lease_2']);
    // Two long contexts are there, although a third would fit.
    expect(granted(admit(state, request('3', { workTokens: 300 }), 0))).toEqual([]);
    expect(granted(release(state, [{ leaseId: 'lease_1', outcome: 'ok' }], 0).effects)).toEqual(['lease_3']);
    expect(granted(admit(state, request('4', { workTokens: 250 }), 0))).toEqual(['lease_4']);
    expect(granted(admit(state, request('5', { workTokens: 200 }), 0))).toEqual([]);
  });
});
