import { describe, expect, test } from '@jest/globals';
import type { AdmissionEffect } from './admission-effect.js';
import { createAdmissionState, needsWake, noStartTrouble, type AdmissionRequest, type AdmissionState, type ServingReplica, type StartTrouble } from './admission-state.js';
import { admit, cancel } from './admit.js';
import { COLD_GRACE_MS } from './cold-start-verdict.js';
import { CIRCUIT_OPEN_MS } from './circuit.js';
import { expire } from './expire.js';
import { release, renew } from './leases.js';
import { EXCLUDED_WAIT_MS_MAX } from './overdue.js';
import { syncReplicas } from './sync-replicas.js';

const LEASE_TTL_MS = 20_000;

const replica = (replicaId: string, slots = 1): ServingReplica => ({ replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'engine-sim', servedModel: 'm', slots });

function stateWith(ready: readonly ServingReplica[], settings: { queueMax?: number; queueWaitMsMax?: number; grantsFromMs?: number } = {}): AdmissionState {
  const { queueMax = 10, queueWaitMsMax = 30_000, grantsFromMs = 0 } = settings;
  const state = createAdmissionState({ endpointId: 'ep_1', queueMax, queueWaitMsMax, leaseTtlMs: LEASE_TTL_MS }, grantsFromMs);
  setFleet(state, ready, 0);
  return state;
}

function setFleet(state: AdmissionState, ready: readonly ServingReplica[], nowMs: number, trouble: StartTrouble = noStartTrouble, draining: readonly ServingReplica[] = []): AdmissionEffect[] {
  return syncReplicas(state, { ready, draining, trouble }, nowMs);
}

function request(name: string, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return { requestId: `req_${name}`, leaseId: `lease_${name}`, gatewayId: 'inst_g', organisationId: 'org_1', excludedReplicaIds: [], waitMsMax: 60_000, ...changes };
}

const summary = (effects: readonly AdmissionEffect[]): string[] => effects.map((effect) => {
  if (effect.kind === 'grant') return `grant ${effect.requestId} ${effect.lease.replicaId}`;
  if (effect.kind === 'refuse') return `refuse ${effect.requestId} ${effect.refusal.code}`;
  return effect.kind;
});

const give = (state: AdmissionState, name: string, nowMs: number, outcome: 'ok' | 'aborted' | 'engine-failed' = 'ok'): string[] =>
  summary(release(state, [{ leaseId: `lease_${name}`, outcome }], nowMs).effects);

describe('queue', () => {
  test('grants free slots at once and then one slot for each release, oldest first', () => {
    const state = stateWith([replica('a'), replica('b')]);
    expect(summary(admit(state, request('1'), 0))).toEqual(['grant req_1 a']);
    expect(summary(admit(state, request('2'), 0))).toEqual(['grant req_2 b']);
    expect(summary(admit(state, request('3'), 10))).toEqual([]);
    expect(summary(admit(state, request('4'), 20))).toEqual([]);
    const { effects } = release(state, [{ leaseId: 'lease_2', outcome: 'ok' }], 500);
    expect(effects).toMatchObject([{ kind: 'grant', requestId: 'req_3', lease: { replicaId: 'b', queuedMs: 490, coldStart: false, expiresAtMs: 500 + LEASE_TTL_MS } }]);
    expect(give(state, '1', 600)).toEqual(['grant req_4 a']);
  });

  test('refuses beyond its length with a hint when to come back', () => {
    const state = stateWith([replica('a')], { queueMax: 1 });
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    const [effect] = admit(state, request('3'), 0);
    expect(effect).toMatchObject({ kind: 'refuse', refusal: { code: 'queue_full', retryAfterMs: 4_000 } });
  });

  test('a tenant that filled the queue makes room for another one, which gets at most half', () => {
    const state = stateWith([replica('a')], { queueMax: 4 });
    admit(state, request('0'), 0);
    for (const name of ['1', '2', '3', '4']) admit(state, request(name), 0);
    const other = (name: string): string[] => summary(admit(state, request(name, { organisationId: 'org_2' }), 0));
    expect(other('x')).toEqual(['refuse req_4 queue_full']);
    expect(other('y')).toEqual(['refuse req_3 queue_full']);
    expect(other('z')).toEqual(['refuse req_z queue_full']);
    expect([...state.waiting.keys()]).toEqual(['req_1', 'req_2', 'req_x', 'req_y']);
  });

  test('refuses who waited too long for a slot, and at once who may not wait', () => {
    const state = stateWith([replica('a')], { queueWaitMsMax: 1_000 });
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    expect(summary(admit(state, request('3', { waitMsMax: 0 }), 0))).toEqual(['refuse req_3 queue_full']);
    expect(summary(expire(state, 999).effects)).toEqual([]);
    expect(summary(expire(state, 1_000).effects)).toEqual(['refuse req_2 queue_timeout']);
  });

  test('a request that asks again gives up its first place', () => {
    const state = stateWith([replica('a')]);
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    admit(state, request('3'), 0);
    expect(summary(admit(state, request('2', { leaseId: 'lease_2b' }), 0))).toEqual(['refuse req_2 conflict']);
    expect([...state.waiting.values()].map((waiter) => waiter.leaseId)).toEqual(['lease_3', 'lease_2b']);
  });

  test('a cancelled request leaves the queue, or gives back the slot it got meanwhile', () => {
    const state = stateWith([replica('a')]);
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    admit(state, request('3'), 0);
    expect(cancel(state, 'req_2', 0)).toEqual({ cancelled: true, effects: [] });
    const granted = cancel(state, 'req_1', 0);
    expect(granted.cancelled).toBe(true);
    expect(summary(granted.effects)).toEqual(['grant req_3 a']);
    expect(cancel(state, 'req_9', 0).cancelled).toBe(false);
  });

  test('a retry looks past the replica that failed it, and does not hold up the others', () => {
    const state = stateWith([replica('a'), replica('b')]);
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    admit(state, request('3', { excludedReplicaIds: ['a'] }), 0);
    admit(state, request('4'), 0);
    expect(give(state, '1', 0)).toEqual(['grant req_4 a']);
    expect(give(state, '2', 0)).toEqual(['grant req_3 b']);
  });

  test('a retry that no ready replica is left for waits a little for a new one', () => {
    const state = stateWith([replica('a', 2)]);
    admit(state, request('1', { excludedReplicaIds: ['a'] }), 0);
    admit(state, request('2', { excludedReplicaIds: ['a'] }), 0);
    expect(summary(setFleet(state, [replica('a', 2), replica('b')], 1_000))).toEqual(['grant req_1 b']);
    setFleet(state, [replica('a', 2)], 2_000);
    expect(summary(expire(state, EXCLUDED_WAIT_MS_MAX).effects)).toEqual(['refuse req_2 replica_failed']);
  });
});

describe('cold start', () => {
  test('wakes once, and the queue clock starts when a replica is ready', () => {
    const state = stateWith([], { queueMax: 200, queueWaitMsMax: 1_000 });
    expect(summary(admit(state, request('1'), 0))).toEqual(['wake']);
    for (let index = 2; index <= 100; index += 1) expect(admit(state, request(String(index)), 0)).toEqual([]);
    expect(needsWake(state)).toBe(true);
    expect(expire(state, 30_000).effects).toEqual([]);
    const granted = setFleet(state, [replica('a', 2)], 30_000);
    expect(granted).toMatchObject([{ kind: 'grant', lease: { coldStart: true, queuedMs: 30_000 } }, { kind: 'grant' }]);
    expect(expire(state, 30_999).effects).toEqual([]);
    expect(expire(state, 31_000).effects).toHaveLength(98);
  });

  test('gives up when the caller does, and says that the model is loading', () => {
    const state = stateWith([]);
    admit(state, request('1', { waitMsMax: 500 }), 0);
    expect(summary(expire(state, 500).effects)).toEqual(['refuse req_1 model_loading']);
    expect(summary(admit(state, request('2', { waitMsMax: 0 }), 600))).toEqual(['refuse req_2 model_loading', 'wake']);
  });

  test('refuses with the reason when the model fits nowhere, but not before the wake had its chance', () => {
    const state = stateWith([]);
    admit(state, request('1'), 0);
    setFleet(state, [], 10, { ...noStartTrouble, placementRefusal: 'no node has 400 MB free' });
    expect(expire(state, COLD_GRACE_MS - 1).effects).toEqual([]);
    const { effects } = expire(state, COLD_GRACE_MS);
    expect(effects).toMatchObject([{ kind: 'refuse', refusal: { code: 'no_capacity', message: expect.stringContaining('no node has 400 MB free') } }]);
  });

  test('refuses after two failed starts while waiting, and goes on waiting while a start is under way', () => {
    const state = stateWith([]);
    setFleet(state, [], 0, { ...noStartTrouble, failedStarts: 3, failedStartsInARow: 3, lastFailure: 'old', isStarting: true });
    admit(state, request('1'), 0);
    expect(expire(state, COLD_GRACE_MS * 2).effects).toEqual([]);
    setFleet(state, [], 20_000, { ...noStartTrouble, failedStarts: 5, failedStartsInARow: 5, lastFailure: 'the engine exited', isStarting: true });
    const { effects } = expire(state, 20_000);
    expect(effects).toMatchObject([{ kind: 'refuse', refusal: { code: 'no_capacity', message: expect.stringContaining('the engine exited') } }]);
  });

  test('an endpoint that loses its last replica wakes again for those who wait', () => {
    const state = stateWith([replica('a')], { queueWaitMsMax: 1_000 });
    admit(state, request('1'), 0);
    admit(state, request('2'), 0);
    expect(summary(setFleet(state, [], 500))).toEqual(['wake']);
    expect(state.leases.size).toBe(0);
    expect(expire(state, 5_000).effects).toEqual([]);
    expect(summary(setFleet(state, [replica('b')], 6_000))).toEqual(['grant req_2 b']);
  });
});

describe('leases', () => {
  test('expire without a renewal, and the slot goes to the next', () => {
    const state = stateWith([replica('a')]);
    admit(state, request('1'), 0);
    admit(state, request('2', { waitMsMax: 600_000 }), LEASE_TTL_MS - 1);
    expect(expire(state, LEASE_TTL_MS - 1).effects).toEqual([]);
    const passed = expire(state, LEASE_TTL_MS);
    expect([passed.expired, summary(passed.effects)]).toEqual([1, ['grant req_2 a']]);
  });

  test('a renewal extends, and an owner that restarted learns from it', () => {
    const first = stateWith([replica('a')]);
    const [granted] = admit(first, request('1'), 0);
    if (granted?.kind !== 'grant') throw new Error('expected a grant');
    expect(renew(first, 'inst_g', [granted.lease], 15_000)).toBe(1);
    expect(expire(first, LEASE_TTL_MS).expired).toBe(0);

    const second = stateWith([replica('a')], { grantsFromMs: 16_000 });
    expect(admit(second, request('2'), 15_600)).toEqual([]);
    expect(renew(second, 'inst_g', [granted.lease], 15_800)).toBe(1);
    expect(expire(second, 16_000).effects).toEqual([]);
    expect(give(second, '1', 17_000)).toEqual(['grant req_2 a']);
  });

  test('a renewal that arrives after the release does not bring the lease back', () => {
    const state = stateWith([replica('a')]);
    const [granted] = admit(state, request('1'), 0);
    if (granted?.kind !== 'grant') throw new Error('expected a grant');
    give(state, '1', 10);
    expect(renew(state, 'inst_g', [granted.lease], 20)).toBe(0);
    expect(summary(admit(state, request('2'), 30))).toEqual(['grant req_2 a']);
  });

  test('a draining replica keeps its leases and gets no new ones', () => {
    const state = stateWith([replica('a', 2)]);
    admit(state, request('1'), 0);
    setFleet(state, [], 10, noStartTrouble, [replica('a', 2)]);
    expect(state.leases.size).toBe(1);
    expect(summary(admit(state, request('2'), 20))).toEqual(['wake']);
    expect(release(state, [{ leaseId: 'lease_1', outcome: 'ok' }], 30)).toEqual({ released: 1, effects: [] });
  });
});

describe('circuits', () => {
  function failFive(state: AdmissionState, replicaId: string, others: readonly string[], nowMs: number): string[] {
    const seen: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const name = `${replicaId}${index}`;
      admit(state, request(name, { excludedReplicaIds: others }), nowMs);
      seen.push(...give(state, name, nowMs, 'engine-failed'));
    }
    return seen;
  }

  test('keep requests from a failing replica until a probe succeeds', () => {
    const state = stateWith([replica('a'), replica('b')]);
    expect(failFive(state, 'a', ['b'], 0)).toEqual(['circuit-opened']);
    expect(summary(admit(state, request('1'), 0))).toEqual(['grant req_1 b']);
    expect(admit(state, request('2'), 0)).toEqual([]);
    expect(summary(expire(state, CIRCUIT_OPEN_MS).effects)).toEqual(['grant req_2 a']);
    expect(give(state, '2', CIRCUIT_OPEN_MS + 1)).toEqual(['circuit-closed']);
  });

  test('a probe that ends without an answer makes way for the next one', () => {
    const state = stateWith([replica('a'), replica('b')]);
    failFive(state, 'a', ['b'], 0);
    admit(state, request('busy', { excludedReplicaIds: ['a'] }), CIRCUIT_OPEN_MS);
    expect(summary(admit(state, request('p1'), CIRCUIT_OPEN_MS))).toEqual(['grant req_p1 a']);
    cancel(state, 'req_p1', CIRCUIT_OPEN_MS);
    expect(summary(admit(state, request('p2'), CIRCUIT_OPEN_MS))).toEqual(['grant req_p2 a']);
    expect(summary(admit(state, request('p3'), CIRCUIT_OPEN_MS))).toEqual([]);
    // The busy request is renewed; the probe's gateway is gone.
    const busy = state.leases.get('lease_busy');
    renew(state, 'inst_g', busy === undefined ? [] : [busy.lease], CIRCUIT_OPEN_MS + 1);
    expect(summary(expire(state, CIRCUIT_OPEN_MS + LEASE_TTL_MS).effects)).toEqual(['grant req_p3 a']);
  });

  test('never take out the only replica, nor more than half', () => {
    const alone = stateWith([replica('a')]);
    expect(failFive(alone, 'a', [], 0)).toEqual([]);
    const pair = stateWith([replica('a'), replica('b')]);
    failFive(pair, 'a', ['b'], 0);
    expect(failFive(pair, 'b', ['a'], 0)).toEqual([]);
    expect(summary(setFleet(pair, [replica('a')], 10))).toEqual(['circuit-closed']);
  });
});
