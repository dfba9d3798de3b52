import type { UsageRecord } from '@penstock/contract-events';
import type { UsageDraft, UsageProgress } from './usage-record.js';

/** One request whose usage is not known yet. */
export interface OpenUsage {
  /** Notes how far it got; written down a little later, so that a crash loses little of it. */
  progress(progress: UsageProgress): void;
  /**
   * Resolves once everything that was opened and settled before the call survives a kill of the process: an engine hears of the
   * request only then, and a client of its end. Throws {@link UsageOutboxFullError} when it could not be written down.
   */
  written(): Promise<void>;
  /** Ends it. The record survives a crash of the process once `written` says so, and a power cut once the promise resolves; a failure of that is logged, and need not be caught. Only the first call counts. */
  settle(record: UsageRecord): Promise<void>;
}

export interface OutboxStats {
  readonly openRequests: number;
  /** Settled records that the event log has not confirmed yet. */
  readonly unpublished: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/**
 * Usage on its way to the event log. Every request that was opened ends up there exactly once by its request id, whatever
 * crashes; a slow or absent event log makes the outbox grow up to its limit, and no request waits for it.
 */
export interface UsageOutbox {
  /** The event carries `traceparent` (W3C) where the process lives to publish it. Throws {@link UsageOutboxFullError} when usage could no longer be kept safe: the request must be refused then. */
  open(draft: UsageDraft, traceparent?: string): OpenUsage;
  /** Waits until everything settled is on disk, and for at most `timeoutMs` until the event log has it. */
  drain(timeoutMs: number): Promise<void>;
  stats(): OutboxStats;
}

/** Usage cannot be written down: the disk or the outbox is full. */
export class UsageOutboxFullError extends Error {
  override readonly name = 'UsageOutboxFullError';
  constructor(readonly reason: string, options?: ErrorOptions) {
    super(`Usage cannot be recorded now: ${reason}`, options);
  }
}
