import type { StartTrouble } from './admission-state.js';

/** A refusal or a failure that stands this long after the wake is not about to pass. */
export const COLD_GRACE_MS = 5_000;
/** So many starts that fail while one request waits are enough for it. */
export const FAILED_STARTS_WHILE_WAITING_MAX = 2;
/** So many failed starts in a row, with none under way, are enough once the grace time is over. */
export const FAILED_STARTS_IN_A_ROW_MAX = 3;

/** Why waiting for a start is pointless; undefined while there is hope. */
export function coldStartVerdict(trouble: StartTrouble, waiter: { readonly waitedMs: number; readonly failedStartsSeen: number }): string | undefined {
  const failure = trouble.lastFailure ?? 'no reason was given';
  if (waiter.failedStartsSeen >= FAILED_STARTS_WHILE_WAITING_MAX) return `its start failed ${waiter.failedStartsSeen} times while the request waited; last: ${failure}`;
  if (trouble.isStarting || waiter.waitedMs < COLD_GRACE_MS) return undefined;
  if (trouble.placementRefusal !== null) return trouble.placementRefusal;
  if (trouble.failedStartsInARow >= FAILED_STARTS_IN_A_ROW_MAX) return `its last ${trouble.failedStartsInARow} starts failed; last: ${failure}`;
  return undefined;
}
