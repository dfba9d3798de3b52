import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { COMPARE_INTERVAL_MS, SLEW_SHARE, STEP_AHEAD_MS_MIN, SteadyClock } from './steady-clock.js';

/** A machine whose clock can be set. */
class Machine {
  private monotonicMs = 5_000.25;
  private aheadMs = 1_795_000_000_000;
  readonly clock = new SteadyClock(() => Math.floor(this.monotonicMs + this.aheadMs), () => this.monotonicMs);

  pass(ms: number): void {
    this.monotonicMs += ms;
  }

  set(byMs: number): void {
    this.aheadMs += byMs;
  }

  get wallMs(): number {
    return Math.floor(this.monotonicMs + this.aheadMs);
  }
}

describe('a steady clock', () => {
  test.each([300_000, -300_000])('goes on at its pace when the machine\'s is set by %d ms, and meets it again in time', (byMs) => {
    const machine = new Machine();
    const beforeMs = machine.clock.now();
    machine.set(byMs);
    machine.pass(1_000);
    expect(Math.abs(machine.clock.now() - beforeMs - 1_000)).toBeLessThanOrEqual(1_000 * SLEW_SHARE + 1);
    for (let count = 0; count < 60; count += 1) {
      machine.pass(60_000);
      machine.clock.now();
    }
    expect(Math.abs(machine.clock.now() - machine.wallMs)).toBeLessThanOrEqual(1);
  });

  test('takes over what the machine says after a sleep, or when it learns the time at last', () => {
    const machine = new Machine();
    machine.set(STEP_AHEAD_MS_MIN + 1_000);
    machine.pass(COMPARE_INTERVAL_MS);
    expect(Math.abs(machine.clock.now() - machine.wallMs)).toBeLessThanOrEqual(1);
  });

  test('never goes back, gives whole milliseconds, and no time limit is off by more than its share, however the machine\'s clock is set', () => {
    const step = fc.record({ setMs: fc.integer({ min: -1_200_000, max: STEP_AHEAD_MS_MIN - 1 }), passMs: fc.oneof(fc.double({ min: 0, max: 120_000, noNaN: true }), fc.double({ min: 0, max: 2 * COMPARE_INTERVAL_MS, noNaN: true })) });
    fc.assert(fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const machine = new Machine();
      for (const { setMs, passMs } of steps) {
        const beforeMs = machine.clock.now();
        // Several in a row may add up to a step.
        machine.set(Math.min(setMs, STEP_AHEAD_MS_MIN - 1 - (machine.wallMs - beforeMs)));
        machine.pass(passMs);
        const totalMs = machine.clock.now() - beforeMs;
        expect(Number.isInteger(totalMs)).toBe(true);
        expect(totalMs).toBeGreaterThanOrEqual(0);
        expect(Math.abs(totalMs - passMs)).toBeLessThanOrEqual(passMs * SLEW_SHARE + 2);
      }
    }));
  });
});
