import type { Clock, Timers } from '@penstock/kernel';

/** How exact the time limits of requests are. */
export const TICK_INTERVAL_MS = 250;

export interface WatchedExchange {
  /** Looks at its time limits. */
  tick(nowMs: number): void;
  /** Ends the request because the gateway stops. */
  shutDown(): void;
}

/** All chat requests in work: one timer looks after all of their time limits, and a gateway that stops waits for them here. */
export class ExchangeWatch {
  private readonly exchanges = new Set<WatchedExchange>();
  private readonly stopTimer: () => void;
  private idleWaiters: (() => void)[] = [];

  constructor(private readonly ports: { readonly clock: Clock; readonly timers: Timers }) {
    this.stopTimer = ports.timers.every(TICK_INTERVAL_MS, () => this.tick());
  }

  get count(): number {
    return this.exchanges.size;
  }

  add(exchange: WatchedExchange): void {
    this.exchanges.add(exchange);
  }

  remove(exchange: WatchedExchange): void {
    this.exchanges.delete(exchange);
    if (this.exchanges.size === 0) for (const resolve of this.idleWaiters.splice(0)) resolve();
  }

  /** Lets requests finish for `graceMs`, then ends what is left with an error. */
  async drain(graceMs: number): Promise<void> {
    if (this.exchanges.size === 0) return;
    const idle = new Promise<void>((resolve) => this.idleWaiters.push(resolve));
    const cancel = this.ports.timers.after(graceMs, () => {
      for (const exchange of [...this.exchanges]) exchange.shutDown();
    });
    await idle;
    cancel();
  }

  stop(): void {
    this.stopTimer();
  }

  private tick(): void {
    const nowMs = this.ports.clock.now();
    for (const exchange of this.exchanges) exchange.tick(nowMs);
  }
}
