import type { Clock } from '@penstock/kernel';

/** So much of the time that passes goes into catching up with a clock of the machine that was set: a time limit is off by no more. */
export const SLEW_SHARE = 0.1;
/** So often at most the two clocks are compared: the machine's is asked for that, and asking it costs as much as all else. */
export const COMPARE_INTERVAL_MS = 50;
/** A clock that is ahead by more than this was set for the first time, or the machine slept: that time is over for everybody. */
export const STEP_AHEAD_MS_MIN = 600_000;

/**
 * The time of the machine's clock, but at the pace of one that nobody can set. Leases, time limits and windows of limits are counted
 * by it: were it set ahead by five minutes, every request in work would have timed out, and were it set back, nothing would end for
 * five minutes. It never goes back, and whole milliseconds come out of it.
 */
export class SteadyClock implements Clock {
  /** The time at the last comparison, the monotonic clock then, and how far the machine's clock was ahead. */
  private timeMs: number;
  private lastMs: number;
  private behindMs = 0;

  /** `wall`: milliseconds since the epoch, as the machine has it. `monotonic`: milliseconds since any moment. */
  constructor(private readonly wall: () => number, private readonly monotonic: () => number) {
    this.timeMs = wall();
    this.lastMs = monotonic();
  }

  now(): number {
    const monotonicMs = this.monotonic();
    const passedMs = Math.max(0, monotonicMs - this.lastMs);
    const slewMs = Math.max(-passedMs * SLEW_SHARE, Math.min(passedMs * SLEW_SHARE, this.behindMs));
    const timeMs = this.timeMs + passedMs + slewMs;
    if (passedMs < COMPARE_INTERVAL_MS) return Math.floor(timeMs);
    this.lastMs = monotonicMs;
    const behindMs = this.wall() - timeMs;
    const isStep = behindMs >= STEP_AHEAD_MS_MIN;
    this.timeMs = isStep ? timeMs + behindMs : timeMs;
    this.behindMs = isStep ? 0 : behindMs;
    return Math.floor(this.timeMs);
  }
}

/** The clock of this process. */
export const steadyClock: Clock = new SteadyClock(() => Date.now(), () => performance.now());
