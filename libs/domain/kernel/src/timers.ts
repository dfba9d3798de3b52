/** Timers as a port, so that simulations decide when they fire. */
export interface Timers {
  /** Calls once after `delayMs`. Returns how to cancel. */
  after(delayMs: number, call: () => void): () => void;
  /** Calls again and again, never overlapping an unfinished asynchronous call. Returns how to cancel. */
  every(intervalMs: number, call: () => void | Promise<void>): () => void;
}
