import { expect, test } from '@jest/globals';
import { estimateRetryAfterMs, RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN, RETRY_SPREAD } from './estimate-retry-after.js';

test('grows with the queue, shrinks with the slots, and stays within its bounds', () => {
  expect(estimateRetryAfterMs({ waiting: 7, slots: 4, meanServiceMs: 1_000 })).toBe(2_000);
  expect(estimateRetryAfterMs({ waiting: 7, slots: 8, meanServiceMs: 1_000 })).toBe(1_000);
  expect(estimateRetryAfterMs({ waiting: 0, slots: 100, meanServiceMs: 1 })).toBe(RETRY_AFTER_MS_MIN);
  expect(estimateRetryAfterMs({ waiting: 10_000, slots: 0, meanServiceMs: 1_000 })).toBe(RETRY_AFTER_MS_MAX);
});

test.each([{ meanServiceMs: 1_000, fromMs: 2_000, toMs: 2_000 * (1 + RETRY_SPREAD) }, { meanServiceMs: 1_000_000, fromMs: RETRY_AFTER_MS_MAX * (1 - RETRY_SPREAD), toMs: RETRY_AFTER_MS_MAX }])('those that are refused together do not come back together, nor after the longest wait', ({ meanServiceMs, fromMs, toMs }) => {
  const hints = Array.from({ length: 100 }, (_, refusals) => estimateRetryAfterMs({ waiting: 7, slots: 4, meanServiceMs }, refusals)).sort((one, other) => one - other);
  expect(hints[0]).toBeGreaterThanOrEqual(fromMs);
  expect(hints.at(-1)).toBeLessThanOrEqual(toMs);
  const gaps = hints.slice(1).map((hint, index) => hint - (hints[index] ?? 0));
  // A hundred of them are nearly as far apart as they can be.
  expect(Math.max(...gaps)).toBeLessThanOrEqual((3 * (toMs - fromMs)) / 100);
});
