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

/** When a place in the queue is likely to be free: each of `slots` frees up once per `meanServiceMs`. In whole milliseconds. */
export function estimateRetryAfterMs(outlook: QueueOutlook): number {
  const rounds = (outlook.waiting + 1) / Math.max(1, outlook.slots);
  return Math.ceil(Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, rounds * outlook.meanServiceMs)));
}
