import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createAdmissionState, noStartTrouble, type AdmissionState, type ServingReplica } from './admission-state.js';
import { admit } from './admit.js';
import { CIRCUIT_OPEN_MS, openCircuitsMax, type ReplicaOutcome } from './circuit.js';
import { release } from './leases.js';
import { syncReplicas } from './sync-replicas.js';
import { probeEnded, takeProbes } from './token-probe.js';

const replica = (index: number): ServingReplica => ({ replicaId: `rep_${index}`, modelVersionId: 'mv_1', url: `http://127.0.0.1:${index}`, engine: 'engine-sim', servedModel: 'm', slots: 4 });

function stateOf(replicas: number): AdmissionState {
  const state = createAdmissionState({ endpointId: 'ep_1', queueMax: 10, queueWaitMsMax: 30_000, leaseTtlMs: 20_000, probesApart: true }, 0);
  syncReplicas(state, { ready: Array.from({ length: replicas }, (_, index) => replica(index)), draining: [], trouble: noStartTrouble }, 0);
  return state;
}

const isOut = (state: AdmissionState, replicaId: string): boolean => state.replicas.get(replicaId)?.circuit.phase !== 'closed';

test('no request goes through an open circuit, probes come one at a time when they are due, and at most half are out', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('request' as const), outcome: fc.constantFrom<ReplicaOutcome>('ok', 'engine-failed', 'engine-failed', 'engine-timed-out', 'aborted') }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: CIRCUIT_OPEN_MS }) }),
    fc.record({ kind: fc.constant('probes' as const), outcome: fc.constantFrom<ReplicaOutcome>('ok', 'engine-failed', 'aborted') }),
  );
  fc.assert(fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 200 }), (replicas, steps) => {
    const state = stateOf(replicas);
    let nowMs = 1;
    for (const [index, step] of steps.entries()) {
      if (step.kind === 'wait') nowMs += step.ms;
      if (step.kind === 'request') {
        const [effect] = admit(state, { requestId: `req_${index}`, leaseId: `lease_${index}`, gatewayId: 'g', organisationId: 'o', excludedReplicaIds: [], waitMsMax: 0 }, nowMs);
        if (effect?.kind !== 'grant') continue;
        expect(isOut(state, effect.lease.replicaId)).toBe(false);
        release(state, [{ leaseId: `lease_${index}`, outcome: step.outcome }], nowMs);
      }
      if (step.kind === 'probes') {
        const probes = takeProbes(state, nowMs);
        expect(takeProbes(state, nowMs)).toEqual([]);
        for (const { replicaId } of probes) {
          expect(isOut(state, replicaId)).toBe(true);
          probeEnded(state, replicaId, step.outcome, nowMs);
          expect(isOut(state, replicaId)).toBe(step.outcome !== 'ok');
        }
      }
      expect([...state.replicas.keys()].filter((id) => isOut(state, id)).length).toBeLessThanOrEqual(openCircuitsMax(replicas));
    }
  }));
});
