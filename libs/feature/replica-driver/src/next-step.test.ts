import { replicaPlacedV2 } from '@penstock/contract-events';
import { replicaDecider, type ObservedPhase, type ReplicaEvent, type ReplicaObservation, type ReplicaState } from '@penstock/domain-lifecycle';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nextStep, type StepTimes } from './next-step.js';

const placed = replicaPlacedV2.schema.parse(replicaPlacedV2.example);
const times: StepTimes = { missingMs: 0, vanishedGraceMs: 1_000, blockedMs: 0, blockedGraceMs: 1_000, isDrained: false };

function replica(phase: ReplicaState['phase']): ReplicaState {
  const facts = replicaDecider.evolve(null, { type: 'replica.placed.v2', data: placed } satisfies ReplicaEvent);
  return { ...(facts as ReplicaState), phase, placedAtMs: 0, phaseSinceMs: 0, readyAtMs: null };
}

function seen(phase: ObservedPhase, change: Partial<ReplicaObservation> = {}): ReplicaObservation {
  return { replicaId: placed.replicaId, phase, url: 'http://127.0.0.1:8000', blocked: null, end: null, ...change };
}

describe('the next step of a replica', () => {
  test('goes from placement to ready', () => {
    expect(nextStep(replica('placed'), undefined, times)).toEqual({ kind: 'start' });
    expect(nextStep(replica('placed'), seen('waiting'), times)).toEqual({ kind: 'wait' });
    expect(nextStep(replica('placed'), seen('pulling'), times)).toEqual({ kind: 'advance', phase: 'pulling' });
    expect(nextStep(replica('pulling'), seen('loading'), times)).toEqual({ kind: 'advance', phase: 'loading' });
    expect(nextStep(replica('loading'), seen('serving'), times)).toEqual({ kind: 'warm-up', url: 'http://127.0.0.1:8000' });
    expect(nextStep(replica('ready'), seen('serving'), times)).toEqual({ kind: 'wait' });
  });

  test('a fresh object may not be shown yet; what stays away is gone', () => {
    expect(nextStep(replica('pulling'), undefined, times)).toEqual({ kind: 'wait' });
    expect(nextStep(replica('ready'), undefined, { ...times, missingMs: 1_000 })).toMatchObject({ kind: 'fail', code: 'engine_exited' });
  });

  test('a trouble that clears up is waited out, one that stays is told', () => {
    const blocked = seen('waiting', { blocked: { code: 'start_timeout', reason: 'no node has room' } });
    expect(nextStep(replica('pulling'), blocked, times)).toEqual({ kind: 'wait' });
    expect(nextStep(replica('pulling'), blocked, { ...times, blockedMs: 1_000 })).toEqual({ kind: 'fail', code: 'start_timeout', reason: 'no node has room' });
  });

  test('an end that somebody asked for is a stop, any other a failure', () => {
    expect(nextStep(replica('ready'), seen('ending'), times)).toMatchObject({ kind: 'start-drain' });
    expect(nextStep(replica('ready'), seen('ended', { end: { wasAsked: true, reason: 'evicted' } }), times)).toEqual({ kind: 'stop', reason: 'evicted' });
    expect(nextStep(replica('ready'), seen('ended', { end: { wasAsked: false, reason: 'exit code 137' } }), times)).toEqual({ kind: 'fail', code: 'engine_exited', reason: 'exit code 137' });
  });

  test('a drain waits for the last request, then retires, then stops', () => {
    expect(nextStep(replica('draining'), seen('serving'), times)).toEqual({ kind: 'wait' });
    expect(nextStep(replica('draining'), seen('serving'), { ...times, isDrained: true })).toEqual({ kind: 'retire' });
    expect(nextStep(replica('draining'), seen('ending'), { ...times, isDrained: true })).toEqual({ kind: 'wait' });
    expect(nextStep(replica('draining'), undefined, times)).toEqual({ kind: 'stop', reason: 'drained' });
  });

  test('property: nothing is started twice, and a replica that takes traffic is never failed while it serves', () => {
    const phases = fc.constantFrom('placed', 'pulling', 'loading', 'warming', 'ready', 'draining' as const);
    const shown = fc.option(fc.constantFrom<ObservedPhase>('waiting', 'pulling', 'loading', 'serving', 'ending', 'ended'), { nil: undefined });
    fc.assert(fc.property(phases, shown, fc.nat(5_000), fc.nat(5_000), fc.boolean(), (phase, shows, missingMs, blockedMs, isDrained) => {
      const step = nextStep(replica(phase as ReplicaState['phase']), shows === undefined ? undefined : seen(shows), { ...times, missingMs, blockedMs, isDrained });
      if (step.kind === 'start') expect([phase, shows]).toEqual(['placed', undefined]);
      if (phase === 'ready' && shows === 'serving') expect(step).toEqual({ kind: 'wait' });
      if (step.kind === 'advance') expect(phase).not.toBe('ready');
    }));
  });
});
