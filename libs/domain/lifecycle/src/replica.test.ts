import { replicaPlacedV2, replicaReadyV1 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ReplicaEvent, ReplicaFacts } from './replica-facts.js';
import { isEnded, isStarting, mayAdvance, type ReplicaPhase } from './replica-phase.js';
import { replicaDecider, type ReplicaCommand } from './replica.js';

const placement = replicaPlacedV2.schema.parse(replicaPlacedV2.example);
const readiness = replicaReadyV1.schema.parse(replicaReadyV1.example);
const replicaId = placement.replicaId;
const placed: ReplicaEvent = { type: 'replica.placed.v2', data: placement };
const pulling: ReplicaEvent = { type: 'replica.advanced.v1', data: { replicaId, phase: 'pulling' } };
const loading: ReplicaEvent = { type: 'replica.advanced.v1', data: { replicaId, phase: 'loading' } };
const ready: ReplicaEvent = { type: 'replica.ready.v1', data: readiness };
const draining: ReplicaEvent = { type: 'replica.drain-started.v1', data: { replicaId, reason: 'too many' } };
const stopped: ReplicaEvent = { type: 'replica.stopped.v1', data: { replicaId, reason: 'drained' } };
const failed: ReplicaEvent = { type: 'replica.failed.v1', data: { replicaId, phase: 'loading', code: 'engine_exited', reason: 'signal SIGKILL' } };

describe('a replica', () => {
  test('is placed once', () => {
    given(replicaDecider).when({ kind: 'place', ...placement }).then(placed);
    given(replicaDecider, placed).when({ kind: 'place', ...placement }).then();
    given(replicaDecider, placed).when({ kind: 'place', ...placement, members: [{ nodeId: 'node_02', acceleratorIds: [] }] }).thenRefused('already_exists');
  });

  test('may skip phases and never goes back', () => {
    given(replicaDecider, placed).when({ kind: 'advance', phase: 'loading' }).then(loading);
    given(replicaDecider, placed, loading).when({ kind: 'advance', phase: 'loading' }).then();
    given(replicaDecider, placed, loading).when({ kind: 'advance', phase: 'pulling' }).thenRefused('invalid_value');
  });

  test('becomes ready from any phase of its start, not from a drain', () => {
    given(replicaDecider, placed, pulling).when({ kind: 'mark-ready', ...readiness }).then(ready);
    given(replicaDecider, placed, ready).when({ kind: 'mark-ready', ...readiness }).then();
    given(replicaDecider, placed, draining).when({ kind: 'mark-ready', ...readiness }).thenRefused('invalid_value');
  });

  test('drains, then stops', () => {
    given(replicaDecider, placed, ready).when({ kind: 'start-drain', reason: 'too many' }).then(draining);
    given(replicaDecider, placed, ready, draining).when({ kind: 'stop', reason: 'drained' }).then(stopped);
  });

  test('fails in the phase it is in unless told otherwise', () => {
    const command = { kind: 'fail', code: 'engine_exited', reason: 'signal SIGKILL' } as const;
    given(replicaDecider, placed, loading).when(command).then(failed);
    given(replicaDecider, placed, ready).when({ ...command, phase: 'loading' }).then(failed);
    given(replicaDecider, placed, ready).when({ ...command, onlyInPhase: 'loading' }).then();
  });

  test('is left alone once it ended, whatever comes late', () => {
    for (const end of [stopped, failed]) {
      given(replicaDecider, placed, end).when({ kind: 'fail', code: 'node_lost', reason: 'late' }).then();
      given(replicaDecider, placed, end).when({ kind: 'start-drain', reason: 'late' }).then();
      given(replicaDecider, placed, end).when({ kind: 'stop', reason: 'late' }).then();
      given(replicaDecider, placed, end).when({ kind: 'mark-ready', ...readiness }).thenRefused('invalid_value');
    }
  });

  test('has to be placed first', () => {
    given(replicaDecider).when({ kind: 'advance', phase: 'pulling' }).thenRefused('not_found');
  });
});

const anyCommand = fc.constantFrom<ReplicaCommand>(
  { kind: 'place', ...placement },
  { kind: 'place', ...placement, members: [{ nodeId: 'node_02', acceleratorIds: [] }] },
  { kind: 'advance', phase: 'pulling' },
  { kind: 'advance', phase: 'loading' },
  { kind: 'advance', phase: 'warming' },
  { kind: 'mark-ready', ...readiness },
  { kind: 'mark-ready', ...readiness, url: 'http://127.0.0.1:1' },
  { kind: 'start-drain', reason: 'x' },
  { kind: 'stop', reason: 'x' },
  { kind: 'fail', code: 'engine_exited', reason: 'x' },
  { kind: 'fail', code: 'start_timeout', reason: 'x', onlyInPhase: 'loading' },
);

const anyEvent = fc.constantFrom<ReplicaEvent>(placed, pulling, loading, { type: 'replica.advanced.v1', data: { replicaId, phase: 'warming' } }, ready, draining, stopped, failed);

describe('the rule of phases', () => {
  test('no run of commands leads to an illegal transition, and every event changes the state', () => {
    fc.assert(fc.property(fc.array(anyCommand, { maxLength: 30 }), (commands) => {
      let state: ReplicaFacts | null = replicaDecider.initialState;
      for (const command of commands) {
        const decision = replicaDecider.decide(command, state);
        if (decision.kind === 'refused') continue;
        expect(decision.events.length).toBeLessThanOrEqual(1);
        for (const event of decision.events) {
          const after: ReplicaFacts | null = replicaDecider.evolve(state, event);
          expect(after).not.toBe(state);
          expect(isLegal(state?.phase, after?.phase)).toBe(true);
          state = after;
        }
      }
    }));
  });

  test('any order of events folds to a state, and what ended stays as it is', () => {
    fc.assert(fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
      let state: ReplicaFacts | null = null;
      for (const event of events) {
        const after: ReplicaFacts | null = replicaDecider.evolve(state, event);
        if (state !== null && isEnded(state.phase)) expect(after).toBe(state);
        if (state === null && event.type !== 'replica.placed.v2') expect(after).toBeNull();
        state = after;
      }
    }));
  });
});

function isLegal(from: ReplicaPhase | undefined, to: ReplicaPhase | undefined): boolean {
  if (to === undefined) return false;
  if (from === undefined) return to === 'placed';
  if (isEnded(from)) return false;
  if (to === 'stopped' || to === 'failed') return true;
  if (to === 'draining') return from !== 'draining';
  return to === 'ready' ? isStarting(from) : mayAdvance(from, to);
}
