import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { VirtualTime } from './virtual-time.js';

describe('virtual time', () => {
  test('property: what falls due first comes first, and what falls due together comes in the order in which it was asked for', async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 60 }), async (delays) => {
      const time = new VirtualTime(0);
      const seen: [number, number][] = [];
      for (const [index, delayMs] of delays.entries()) time.after(delayMs, () => seen.push([time.now(), index]));
      await time.run(100);
      expect(seen).toEqual(delays.map((delayMs, index): [number, number] => [delayMs, index]).sort((one, other) => one[0] - other[0] || one[1] - other[1]));
      expect(time.now()).toBe(100);
    }));
  });

  test('promises that an event sets off settle before the next event', async () => {
    const time = new VirtualTime(0);
    const seen: string[] = [];
    time.after(5, () => void (async () => {
      for (let hop = 0; hop < 20; hop += 1) await Promise.resolve();
      seen.push('settled');
    })());
    time.after(5, () => seen.push('next'));
    await time.run(10);
    expect(seen).toEqual(['settled', 'next']);
  });

  test('an interval never overlaps what it started, and ends when told', async () => {
    const time = new VirtualTime(0);
    let starts = 0;
    const stop = time.every(10, () => {
      starts += 1;
      return new Promise<void>((resolve) => time.after(25, resolve));
    });
    await time.run(100);
    expect(starts).toBe(4);
    stop();
    await time.run(100);
    expect(starts).toBe(4);
  });

  test('stops as soon as its condition is met', async () => {
    const time = new VirtualTime(0);
    let count = 0;
    time.every(10, () => void (count += 1));
    expect(await time.run(1_000, () => count === 3)).toBe(true);
    expect(time.now()).toBe(30);
  });
});
