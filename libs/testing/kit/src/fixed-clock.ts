import type { Clock } from '@penstock/kernel';

/** A clock that stands still until a test moves it. */
export class FixedClock implements Clock {
  constructor(private nowMs = Date.UTC(2_026, 10, 29, 12)) {}

  now(): number {
    return this.nowMs;
  }

  advance(byMs: number): void {
    this.nowMs += byMs;
  }
}
