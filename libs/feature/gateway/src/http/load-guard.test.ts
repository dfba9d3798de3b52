import { expect, test } from '@jest/globals';
import { silentLogger } from '@penstock/kernel';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import { BUSY_REQUESTS_MIN, GUARD_INTERVAL_MS, LoadGuard, SLOW_LOOKS_MIN, STARVED_LAG_FACTOR, type LoopReading } from './load-guard.js';

const LAG_MS_MAX = 20;

async function takenAfter(reading: LoopReading, looks: number, then: LoopReading = reading, looksThen = 0, inFlight = BUSY_REQUESTS_MIN): Promise<number> {
  const timers = new ManualTimers(new FixedClock());
  let now = reading;
  const guard = new LoadGuard(timers, silentLogger, LAG_MS_MAX, () => inFlight, () => now);
  await timers.advance(GUARD_INTERVAL_MS * looks);
  now = then;
  await timers.advance(GUARD_INTERVAL_MS * looksThen);
  return Array.from({ length: 1_000 }, () => guard.mayTake()).filter(Boolean).length;
}

const calm = { utilisation: 0.5, cpuShare: 0.5, lagMs: 0 };
const slow = { utilisation: 1, cpuShare: 0.9, lagMs: LAG_MS_MAX + 1 };

test('a loop that is busy but quick takes everything, and so does one that was late once while it was idle', async () => {
  expect(await takenAfter({ ...slow, lagMs: 5 }, 100)).toBe(1_000);
  expect(await takenAfter({ ...slow, utilisation: 0.3 }, 100)).toBe(1_000);
  expect(await takenAfter(slow, SLOW_LOOKS_MIN - 1)).toBe(1_000);
  // Others have the core, or there is hardly anything to turn away.
  expect(await takenAfter({ ...slow, cpuShare: 0.3, lagMs: LAG_MS_MAX * STARVED_LAG_FACTOR }, 100)).toBe(1_000);
  expect(await takenAfter(slow, 100, slow, 0, BUSY_REQUESTS_MIN - 1)).toBe(1_000);
});

test('a loop that cannot keep up takes less and less, but never nothing, and recovers', async () => {
  const [some, few] = [await takenAfter(slow, SLOW_LOOKS_MIN + 2), await takenAfter(slow, 100)];
  expect(some).toBeLessThan(700);
  expect(few).toBeLessThan(60);
  expect(few).toBeGreaterThan(0);
  expect(await takenAfter(slow, 100, calm, 60)).toBe(1_000);
  expect(await takenAfter({ ...slow, cpuShare: 0.3, lagMs: LAG_MS_MAX * STARVED_LAG_FACTOR + 1 }, 100)).toBeLessThan(60);
});
