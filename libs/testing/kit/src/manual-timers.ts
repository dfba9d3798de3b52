import type { Timers } from '@penstock/kernel';
import type { FixedClock } from './fixed-clock.js';

interface Pending {
  dueMs: number;
  readonly order: number;
  readonly call: () => void | Promise<void>;
  readonly intervalMs: number | undefined;
}

/** More than this in one `advance` is a timer that never lets time pass. */
const FIRINGS_MAX = 100_000;

/** Timers that fire only when a test advances them, in order of their due time; the clock shows each one's due time. */
export class ManualTimers implements Timers {
  private readonly pending = new Set<Pending>();
  private order = 0;

  constructor(private readonly clock: FixedClock) {}

  after(delayMs: number, call: () => void): () => void {
    return this.add(delayMs, call, undefined);
  }

  every(intervalMs: number, call: () => void | Promise<void>): () => void {
    return this.add(intervalMs, call, intervalMs);
  }

  /** How many timers wait. */
  get size(): number {
    return this.pending.size;
  }

  /** Lets time pass and awaits every call that falls due in it. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.clock.now() + byMs;
    for (let firings = 0; ; firings += 1) {
      if (firings > FIRINGS_MAX) throw new RangeError(`more than ${FIRINGS_MAX} timers fired in one advance`);
      const next = this.nextDue(endMs);
      if (next === undefined) break;
      this.clock.advance(Math.max(0, next.dueMs - this.clock.now()));
      if (next.intervalMs === undefined) this.pending.delete(next);
      else next.dueMs += next.intervalMs;
      await next.call();
    }
    this.clock.advance(endMs - this.clock.now());
  }

  private add(delayMs: number, call: () => void | Promise<void>, intervalMs: number | undefined): () => void {
    this.order += 1;
    const entry: Pending = { dueMs: this.clock.now() + delayMs, order: this.order, call, intervalMs };
    this.pending.add(entry);
    return () => this.pending.delete(entry);
  }

  private nextDue(endMs: number): Pending | undefined {
    return [...this.pending].filter((entry) => entry.dueMs <= endMs).sort((left, right) => left.dueMs - right.dueMs || left.order - right.order)[0];
  }
}
