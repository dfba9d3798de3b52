import type { Logger, Timers } from '@penstock/kernel';

export interface ReconcileLoopOptions {
  readonly timers: Timers;
  readonly logger: Logger;
  /** It runs at least this often, whatever changed. */
  readonly intervalMs: number;
  /** Compares what is with what should be and does the next steps. It may fail: the next run starts from what is then. */
  readonly reconcile: () => Promise<void>;
}

/** Changes that come within this time are handled by one run. */
const DEBOUNCE_MS = 20;

/** A level-triggered loop: runs on a slow timer and soon after each trigger, one run at a time. */
export class ReconcileLoop {
  private running: Promise<void> | undefined;
  private cancelDebounce: (() => void) | undefined;
  private cancelInterval: (() => void) | undefined;
  private isDue = false;
  private isClosed = false;

  constructor(private readonly options: ReconcileLoopOptions) {}

  start(): void {
    this.cancelInterval = this.options.timers.every(this.options.intervalMs, () => this.run());
    this.trigger();
  }

  /** Asks for a run soon. */
  readonly trigger = (): void => {
    if (this.isClosed || this.cancelDebounce !== undefined) return;
    this.cancelDebounce = this.options.timers.after(DEBOUNCE_MS, () => {
      this.cancelDebounce = undefined;
      return this.run();
    });
  };

  /** Ends the timers and waits for the run that is under way. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.cancelDebounce?.();
    this.cancelInterval?.();
    await this.running;
  }

  private run(): Promise<void> {
    if (this.isClosed) return Promise.resolve();
    if (this.running !== undefined) {
      this.isDue = true;
      return this.running;
    }
    this.running = this.runOnce().finally(() => {
      this.running = undefined;
      if (this.isDue) this.trigger();
      this.isDue = false;
    });
    return this.running;
  }

  private async runOnce(): Promise<void> {
    try {
      await this.options.reconcile();
    } catch (error) {
      this.options.logger.warn({ err: error }, 'a reconciliation failed; the next run tries again');
    }
  }
}
