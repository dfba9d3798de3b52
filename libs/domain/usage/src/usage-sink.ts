import type { UsageRecord } from '@penstock/contract-events';

/** One usage event with its position in `EV_USAGE`. */
export interface SequencedUsage {
  readonly record: UsageRecord;
  /** From 1. Of two records with one request id the lower sequence counts. */
  readonly sequence: number;
}

/** Where usage goes to be analysed. */
export interface UsageSink {
  /**
   * Stores the records; resolves once they are durable. Writing a record again, or another record with a request id that
   * is there already, changes no figure. Throws {@link UsageStoreUnavailableError} when the store cannot be reached or refuses for now.
   */
  write(records: readonly SequencedUsage[]): Promise<void>;
}

/** The store of usage cannot be reached, or failed in a way that may pass. What was to be written may be written again. */
export class UsageStoreUnavailableError extends Error {
  override readonly name = 'UsageStoreUnavailableError';
  constructor(readonly reason: string, options?: ErrorOptions) {
    super(`The store of usage is not available: ${reason}`, options);
  }
}
