import { UsageStoreUnavailableError, type SequencedUsage, type UsageSink } from '@penstock/domain-usage';
import type { Logger, Timers } from '@penstock/kernel';
import type { UsageMetrics } from './metering-metrics.js';

export interface UsageBatcherOptions {
  readonly sink: UsageSink;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly metrics: UsageMetrics;
  readonly flushRecords: number;
  readonly flushDelayMs: number;
}

/** More records than this at once are refused; the consumer gets them again later. */
export const PENDING_RECORDS_MAX = 50_000;
const RETRY_DELAY_MS = 200;
const RETRY_DELAY_MAX_MS = 5_000;

interface Waiting {
  readonly usage: SequencedUsage;
  readonly stored: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Gathers usage into few inserts. The promise of `add` settles when the record is stored, so an acknowledgement that
 * follows it follows the write. While the store is away the records wait here and nothing is rejected: an outage of any
 * length makes no dead letter. Only a record that the store calls wrong is rejected, and it alone.
 */
export class UsageBatcher {
  private readonly waiting: Waiting[] = [];
  private readonly byPlace = new Map<string, Waiting>();
  private cancelDelay: (() => void) | undefined;
  private running: Promise<void> | undefined;
  private wakeFromPause: (() => void) | undefined;
  private isDraining = false;
  private failure: string | undefined;

  constructor(private readonly options: UsageBatcherOptions) {}

  /** Resolves once the record is stored. A record that waits already, delivered again, joins the one that waits. */
  add(usage: SequencedUsage): Promise<void> {
    const known = this.byPlace.get(placeOf(usage));
    if (known !== undefined) return known.stored;
    if (this.byPlace.size >= PENDING_RECORDS_MAX) return Promise.reject(new UsageStoreUnavailableError(`${PENDING_RECORDS_MAX} records wait already`));
    const { promise: stored, resolve, reject } = Promise.withResolvers<void>();
    const entry = { usage, stored, resolve, reject };
    this.waiting.push(entry);
    this.byPlace.set(placeOf(usage), entry);
    this.options.metrics.pending.set(this.byPlace.size);
    this.schedule();
    return stored;
  }

  /** Readiness: undefined when writing works, else what is wrong. */
  check(): string | undefined {
    return this.failure === undefined ? undefined : `${this.failure} ${this.byPlace.size} records wait.`;
  }

  /** Writes what waits; from here on a store that is away rejects, so that the consumer hands the records out again later. */
  async drain(): Promise<void> {
    this.isDraining = true;
    this.wakeFromPause?.();
    this.flush();
    await this.running;
  }

  private schedule(): void {
    if (this.isDraining || this.waiting.length >= this.options.flushRecords) this.flush();
    else this.cancelDelay ??= this.options.timers.after(this.options.flushDelayMs, () => this.flush());
  }

  private flush(): void {
    this.cancelDelay?.();
    this.cancelDelay = undefined;
    this.running ??= this.writeWaiting().finally(() => {
      this.running = undefined;
      if (this.waiting.length > 0) this.schedule();
    });
  }

  private async writeWaiting(): Promise<void> {
    do {
      await this.writeUntilStored(this.waiting.splice(0, this.options.flushRecords));
    } while (this.waiting.length >= this.options.flushRecords || (this.isDraining && this.waiting.length > 0));
  }

  private async writeUntilStored(batch: readonly Waiting[]): Promise<void> {
    for (let failures = 0; batch.length > 0; failures += 1) {
      try {
        await this.write(batch);
        return;
      } catch (error) {
        this.options.metrics.failures.inc();
        if (!(error instanceof UsageStoreUnavailableError)) return this.writeOneByOne(batch, error);
        if (failures === 0) this.options.logger.warn({ err: error, records: batch.length }, 'usage cannot be stored; it waits and is tried again');
        this.failure = error.message;
        if (this.isDraining) return this.rejectAll(batch, error);
        await this.pause(Math.min(RETRY_DELAY_MAX_MS, RETRY_DELAY_MS * 2 ** Math.min(failures, 10)));
      }
    }
  }

  private async write(batch: readonly Waiting[]): Promise<void> {
    await this.options.sink.write(batch.map((entry) => entry.usage));
    if (this.failure !== undefined) this.options.logger.info({}, 'usage is stored again');
    this.failure = undefined;
    this.options.metrics.written.inc(batch.length);
    for (const entry of batch) this.settle(entry, entry.resolve);
  }

  /** One wrong record must not hold up the others that came with it. */
  private async writeOneByOne(batch: readonly Waiting[], reason: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length === 1 && only !== undefined) return this.rejectAll([only], reason);
    for (const entry of batch) await this.write([entry]).catch((error: unknown) => this.rejectAll([entry], error));
  }

  private rejectAll(batch: readonly Waiting[], error: unknown): void {
    for (const entry of batch) this.settle(entry, () => entry.reject(error));
  }

  private settle(entry: Waiting, how: () => void): void {
    this.byPlace.delete(placeOf(entry.usage));
    this.options.metrics.pending.set(this.byPlace.size);
    how();
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.options.timers.after(delayMs, resolve);
      this.wakeFromPause = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** One event holds several records. */
function placeOf({ record, sequence }: SequencedUsage): string {
  return `${sequence}/${record.requestId}`;
}
