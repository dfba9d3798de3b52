import { silentLogger } from '@penstock/kernel';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { ReconcileLoop } from './reconcile-loop.js';

let timers: ManualTimers;
let runs: number;

beforeEach(() => {
  timers = new ManualTimers(new FixedClock());
  runs = 0;
});

const looping = (reconcile: () => Promise<void>) => new ReconcileLoop({ timers, logger: silentLogger, intervalMs: 1_000, reconcile });

describe('a reconcile loop', () => {
  test('runs soon after its start, once for many triggers, and on its interval', async () => {
    const loop = looping(() => Promise.resolve(void (runs += 1)));
    loop.start();
    await timers.advance(100);
    expect(runs).toBe(1);
    for (let count = 0; count < 10; count += 1) loop.trigger();
    await timers.advance(100);
    expect(runs).toBe(2);
    await timers.advance(2_000);
    expect(runs).toBe(4);
  });

  test('never runs twice at once, and runs again for a trigger that came meanwhile', async () => {
    const gates: (() => void)[] = [];
    const loop = looping(() => new Promise((resolve) => gates.push(resolve)));
    loop.trigger();
    const first = timers.advance(20);
    loop.trigger();
    void timers.advance(20);
    expect(gates).toHaveLength(1);
    gates[0]?.();
    await first;
    const second = timers.advance(50);
    await new Promise((resolve) => setImmediate(resolve));
    expect(gates).toHaveLength(2);
    gates[1]?.();
    await second;
  });

  test('goes on after a failure', async () => {
    const loop = looping(() => {
      runs += 1;
      return Promise.reject(new Error('broker away'));
    });
    loop.start();
    await timers.advance(2_500);
    expect(runs).toBe(3);
  });

  test('waits for the run under way when it is closed, and does not run again', async () => {
    let finish: () => void = () => undefined;
    const loop = looping(() => {
      runs += 1;
      return new Promise((resolve) => (finish = resolve));
    });
    loop.start();
    const advancing = timers.advance(20);
    let isClosed = false;
    const closing = loop.close().then(() => (isClosed = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    finish();
    await Promise.all([closing, advancing]);
    loop.trigger();
    await timers.advance(5_000);
    expect([runs, timers.size]).toEqual([1, 0]);
  });
});
