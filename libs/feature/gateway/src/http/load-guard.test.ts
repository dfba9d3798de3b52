import { expect, test } from '@jest/globals';
import { silentLogger, type Timers } from '@penstock/kernel';
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
  // A timer that is late by more than its interval stands for two looks; one that is very late is still but one turn.
  expect(await takenAfter(slow, SLOW_LOOKS_MIN / 2 - 1)).toBe(1_000);
  expect(await takenAfter({ ...slow, lagMs: 1_000 }, 1)).toBe(1_000);
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

/** What one short stream costs to read and to answer, together as on a core of a server, and what a refusal costs; in milliseconds. */
const [READ_MS, ANSWER_MS, REFUSE_MS] = [0.14, 0.21, 0.05];
const CAPACITY_PER_SECOND = 1_000 / (READ_MS + ANSWER_MS);

interface Served {
  /** From its arrival to its first token, of each request that was taken. */
  readonly waitsMs: readonly number[];
  readonly refused: number;
  readonly seconds: number;
}

/** An event loop whose every turn carries out what came in during the one before: answers of engines first, then new requests. */
function serve(perSecond: number, seconds: number): Served {
  let [now, lastLookMs, busyMs, busyAtLook, inFlight, refused] = [0, 0, 0, 0, 0, 0];
  let look = (): void => undefined;
  let reading = calm;
  const timers: Timers = { after: () => () => undefined, every: (_interval, call) => { look = () => void call(); return () => undefined; } };
  const guard = new LoadGuard(timers, silentLogger, LAG_MS_MAX, () => inFlight, () => reading, () => now);
  const work = (ms: number): void => void ([now, busyMs] = [now + ms, busyMs + ms]);
  const waitsMs: number[] = [];
  const answers: number[] = [];
  let nextMs = 0;
  while (nextMs < seconds * 1_000 || answers.length > 0) {
    const turnMs = now;
    const passedMs = now - lastLookMs;
    if (passedMs >= GUARD_INTERVAL_MS) {
      const share = Math.min(1, (busyMs - busyAtLook) / passedMs);
      reading = { utilisation: share, cpuShare: share, lagMs: passedMs - GUARD_INTERVAL_MS };
      [lastLookMs, busyAtLook] = [now, busyMs];
      look();
    }
    for (const arrivedMs of answers.splice(0)) {
      work(ANSWER_MS);
      waitsMs.push(now - arrivedMs);
      inFlight -= 1;
    }
    for (; nextMs <= turnMs && nextMs < seconds * 1_000; nextMs += 1_000 / perSecond) {
      const isTaken = guard.mayTake();
      work(isTaken ? READ_MS : REFUSE_MS);
      if (isTaken) answers.push(nextMs);
      if (isTaken) inFlight += 1;
      else refused += 1;
    }
    if (now === turnMs) now = Math.max(now + 0.01, Math.min(nextMs, lastLookMs + GUARD_INTERVAL_MS));
  }
  return { waitsMs: waitsMs.toSorted((one, other) => one - other), refused, seconds };
}

const p99 = ({ waitsMs }: Served): number => waitsMs[Math.floor(waitsMs.length * 0.99)] ?? Infinity;

test.each([1.6, 2.4, 4])('a loop that is offered %d times what it can serve keeps those that it takes quick from the beginning, and goes on serving', (factor) => {
  const served = serve(factor * CAPACITY_PER_SECOND, 3);
  expect(p99(served)).toBeLessThan(300);
  const left = 1 - (served.refused * REFUSE_MS) / 1_000 / served.seconds;
  expect(served.waitsMs.length / served.seconds).toBeGreaterThan(0.75 * CAPACITY_PER_SECOND * left);
});

test('a loop that is offered what it can serve refuses nothing', () => {
  expect(serve(0.8 * CAPACITY_PER_SECOND, 3).refused).toBe(0);
});
