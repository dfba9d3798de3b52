import type { StartBackoff } from './placement-input.js';

/** First wait after a failure; it doubles with each further one. */
export const BACKOFF_BASE_MS = 1_000;

/** The longest wait between two starts. */
export const BACKOFF_MAX_MS = 300_000;

/** From this many failures in a row on, the wait is told as a refusal with the code `start_backoff`. */
export const START_FAILURES_TOLD_MIN = 5;

/** A replica that served this long counts as stable: what failed before is forgotten. */
export const STABLE_AFTER_MS = 60_000;

/** One replica of an endpoint as far as its success is concerned. */
export interface StartAttempt {
  readonly nodeId: string;
  readonly placedAtMs: number;
  readonly readyAtMs: number | null;
  /** When it ended; null while it lives. */
  readonly endedAtMs: number | null;
  /** Set when it failed by itself; the loss of its node is nobody's fault and counts as null. */
  readonly failure: string | null;
}

export interface FailureRecord {
  /** null when no failure counts any more, or the wait is over. */
  readonly backoff: StartBackoff | null;
  readonly failuresByNode: ReadonlyMap<string, number>;
}

/**
 * How long a replacement has to wait, from the failures since the endpoint was stable last. Replicas that were placed before a
 * failure were no attempt to mend it: however many of them die with one node, they are one failure in the row. A replica that keeps serving
 * while another fails again and again does not reset the count, since it became stable before those failures.
 */
export function assessFailures(attempts: readonly StartAttempt[], nowMs: number): FailureRecord {
  const stableAtMs = Math.max(Number.NEGATIVE_INFINITY, ...attempts.flatMap((attempt) => stableSince(attempt, nowMs)));
  const failuresByNode = new Map<string, number>();
  let failuresInRow = 0;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  let newest: { atMs: number; reason: string } | undefined;
  for (const { nodeId, placedAtMs, endedAtMs, failure } of inOrderOfEnd(attempts)) {
    if (failure === null || endedAtMs === null || endedAtMs <= stableAtMs) continue;
    failuresByNode.set(nodeId, (failuresByNode.get(nodeId) ?? 0) + 1);
    newest = { atMs: endedAtMs, reason: failure };
    if (placedAtMs < countedAtMs) continue;
    failuresInRow += 1;
    countedAtMs = endedAtMs;
  }
  if (newest === undefined) return { backoff: null, failuresByNode };
  const retryAtMs = newest.atMs + backoffMs(failuresInRow);
  return { backoff: retryAtMs > nowMs ? { failuresInRow, retryAtMs, lastFailure: newest.reason } : null, failuresByNode };
}

/** The wait after so many failures in a row, in milliseconds. */
export function backoffMs(failuresInRow: number): number {
  if (failuresInRow <= 0) return 0;
  return Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(failuresInRow - 1, 30));
}

function inOrderOfEnd(attempts: readonly StartAttempt[]): readonly StartAttempt[] {
  return [...attempts].sort((one, other) => (one.endedAtMs ?? Number.POSITIVE_INFINITY) - (other.endedAtMs ?? Number.POSITIVE_INFINITY) || one.placedAtMs - other.placedAtMs);
}

function stableSince(attempt: StartAttempt, nowMs: number): readonly number[] {
  if (attempt.readyAtMs === null) return [];
  const stableAtMs = attempt.readyAtMs + STABLE_AFTER_MS;
  return stableAtMs <= (attempt.endedAtMs ?? nowMs) ? [stableAtMs] : [];
}
