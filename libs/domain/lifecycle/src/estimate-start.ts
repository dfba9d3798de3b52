import { isStarting } from './replica-phase.js';
import type { FleetState, ReplicaState } from './fleet-state.js';

/** How far the start of an endpoint's next replica is. */
export interface StartEstimate {
  readonly phase: ReplicaState['phase'];
  /** Until it answers, in milliseconds; null while no earlier start tells how long one takes. */
  readonly etaMs: number | null;
}

/** Earlier starts beyond this many, newest first, do not count. */
const STARTS_COUNTED_MAX = 5;

/**
 * The start that is furthest, and the median of how long the endpoint's last starts took, less what has passed. A start that
 * takes longer than any before has an estimate of zero, not of something made up. Undefined when nothing starts.
 */
export function estimateStart(state: FleetState, endpointId: string, nowMs: number): StartEstimate | undefined {
  let furthest: ReplicaState | undefined;
  const durations: { readonly placedAtMs: number; readonly ms: number }[] = [];
  for (const replica of state.replicas.values()) {
    if (replica.endpointId !== endpointId) continue;
    if (isStarting(replica.phase) && (furthest === undefined || replica.placedAtMs < furthest.placedAtMs)) furthest = replica;
    if (replica.readyAtMs !== null) durations.push({ placedAtMs: replica.placedAtMs, ms: replica.readyAtMs - replica.placedAtMs });
  }
  if (furthest === undefined) return undefined;
  const newest = durations.sort((one, other) => other.placedAtMs - one.placedAtMs).slice(0, STARTS_COUNTED_MAX).map(({ ms }) => ms).sort((one, other) => one - other);
  const median = newest[Math.floor(newest.length / 2)];
  return { phase: furthest.phase, etaMs: median === undefined ? null : Math.max(0, median - (nowMs - furthest.placedAtMs)) };
}
