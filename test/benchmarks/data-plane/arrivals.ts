import { setTimeout as pause } from 'node:timers/promises';
import { randomFrom } from '../random.js';

/** Waits of less than this are slept through, where nothing is due that would wait with us. A timer cannot: it fires at whole milliseconds. */
const SHORT_MS = 1;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Moments that know nothing of each other nor of anybody's clock (a Poisson process), `perSecond` of them on average. Timers of Node fire at
 * whole milliseconds of a clock that all processes share: requests sent from them alone would always meet the timers of the engine and of
 * the gateway, such as the moment at which an engine sends one token of each of its streams.
 */
export class Arrivals {
  private readonly random: () => number;
  private nextMs: number;

  constructor(private readonly perSecond: number, seed: number) {
    this.random = randomFrom(seed);
    this.nextMs = performance.now() + this.gapMs();
  }

  /** How many are due since the last call. */
  take(): number {
    const nowMs = performance.now();
    let due = 0;
    for (; this.nextMs <= nowMs; due += 1) this.nextMs += this.gapMs();
    return due;
  }

  /** Resolves when the next one is due; a little later where `mayBlock` is false, since then others wait for this thread. */
  async next(mayBlock: () => boolean): Promise<void> {
    for (;;) {
      const leftMs = this.nextMs - performance.now();
      if (leftMs <= 0) return;
      if (leftMs < SHORT_MS && mayBlock()) Atomics.wait(sleeper, 0, 0, leftMs);
      else await pause(Math.max(1, Math.floor(leftMs - SHORT_MS / 2)));
    }
  }

  private gapMs(): number {
    return (-Math.log(1 - this.random()) * 1_000) / this.perSecond;
  }
}
