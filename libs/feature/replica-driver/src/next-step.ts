import { isStarting, mayAdvance, type ReplicaFailureCode, type ReplicaObservation, type ReplicaState } from '@penstock/domain-lifecycle';

export type ReplicaStep =
  | { readonly kind: 'wait' }
  | { readonly kind: 'start' }
  | { readonly kind: 'advance'; readonly phase: 'pulling' | 'loading' }
  /** Lets the engine generate once and, if it can, says that the replica is ready. */
  | { readonly kind: 'warm-up'; readonly url: string }
  | { readonly kind: 'start-drain'; readonly reason: string }
  | { readonly kind: 'retire' }
  | { readonly kind: 'stop'; readonly reason: string }
  | { readonly kind: 'fail'; readonly code: ReplicaFailureCode; readonly reason: string };

export interface StepTimes {
  /** Milliseconds for which nothing of the replica was seen. */
  readonly missingMs: number;
  readonly vanishedGraceMs: number;
  /** Milliseconds for which it could not go on by itself. */
  readonly blockedMs: number;
  readonly blockedGraceMs: number;
  /** True once its last request ended, or the time for that is over. */
  readonly isDrained: boolean;
}

const WAIT: ReplicaStep = { kind: 'wait' };

/** The one next step for a living replica, from what the log says and what is there. Pure and repeatable. */
export function nextStep(replica: ReplicaState, seen: ReplicaObservation | undefined, times: StepTimes): ReplicaStep {
  if (seen === undefined) return stepWithout(replica, times);
  if (replica.phase === 'draining') return seen.phase === 'ending' ? WAIT : seen.phase === 'ended' ? { kind: 'stop', reason: 'drained' } : times.isDrained ? { kind: 'retire' } : WAIT;
  if (seen.phase === 'ended') return stepAfter(seen.end);
  if (seen.phase === 'ending') return { kind: 'start-drain', reason: 'somebody else asked what runs for it to end, such as an operator who drains the node' };
  if (!isStarting(replica.phase)) return WAIT;
  if (seen.blocked !== null && times.blockedMs >= times.blockedGraceMs) return { kind: 'fail', ...seen.blocked };
  if (seen.phase === 'serving') return seen.url === null ? WAIT : { kind: 'warm-up', url: seen.url };
  const phase = seen.phase === 'loading' ? 'loading' : 'pulling';
  return seen.phase !== 'waiting' && mayAdvance(replica.phase, phase) ? { kind: 'advance', phase } : WAIT;
}

function stepAfter(end: ReplicaObservation['end']): ReplicaStep {
  const reason = end?.reason ?? 'what ran for it has ended';
  return end?.wasAsked === true ? { kind: 'stop', reason } : { kind: 'fail', code: 'engine_exited', reason };
}

function stepWithout(replica: ReplicaState, { missingMs, vanishedGraceMs }: StepTimes): ReplicaStep {
  if (replica.phase === 'draining') return { kind: 'stop', reason: 'drained' };
  if (replica.phase === 'placed') return { kind: 'start' };
  return missingMs >= vanishedGraceMs ? { kind: 'fail', code: 'engine_exited', reason: 'what ran for it is gone: somebody deleted it' } : WAIT;
}
