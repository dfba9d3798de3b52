import { expect, test } from '@jest/globals';
import { estimateRetryAfterMs, RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN } from './estimate-retry-after.js';

test('grows with the queue, shrinks with the slots, and stays within its bounds', () => {
  expect(estimateRetryAfterMs({ waiting: 7, slots: 4, meanServiceMs: 1_000 })).toBe(2_000);
  expect(estimateRetryAfterMs({ waiting: 7, slots: 8, meanServiceMs: 1_000 })).toBe(1_000);
  expect(estimateRetryAfterMs({ waiting: 0, slots: 100, meanServiceMs: 1 })).toBe(RETRY_AFTER_MS_MIN);
  expect(estimateRetryAfterMs({ waiting: 10_000, slots: 0, meanServiceMs: 1_000 })).toBe(RETRY_AFTER_MS_MAX);
});
