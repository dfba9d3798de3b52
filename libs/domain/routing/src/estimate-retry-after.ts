/** A retry sooner than this only adds load. */
export const RETRY_AFTER_MS_MIN = 100;
/** A longer hint is not believed by clients. */
export const RETRY_AFTER_MS_MAX = 60_000;

export interface QueueOutlook {
  /** Requests that wait. */
  readonly waiting: number;
  /** Slots of all replicas together. */
  readonly slots: number;
  /** How long a request holds its slot on average, in milliseconds. */
  readonly meanServiceMs: number;
}

/** So much later than the estimate, as a share of it, is the latest of those that are refused together. */
export const RETRY_SPREAD = 0.5;
/** The fractional parts of its multiples fill the range from 0 to 1 evenly, however many there are. */
const GOLDEN_RATIO = 0.6180339887498949;

/**
 * When a place in the queue is likely to be free: each of `slots` frees up once per `meanServiceMs`. In whole milliseconds. `refusals`
 * counts those that were told before: clients wait as long as they are told, to the millisecond, and would all come back at once.
 */
export function estimateRetryAfterMs(outlook: QueueOutlook, refusals = 0): number {
  const rounds = (outlook.waiting + 1) / Math.max(1, outlook.slots);
  const estimateMs = Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, rounds * outlook.meanServiceMs));
  const spread = RETRY_SPREAD * ((refusals * GOLDEN_RATIO) % 1);
  // At the longest hint there is only room before it.
  return Math.ceil(Math.min(estimateMs * (1 + spread), RETRY_AFTER_MS_MAX * (1 - spread)));
}
