import { expect, test } from '@jest/globals';
import { RetryBudget, RetryBudgets, RETRIES_MIN, RETRY_WINDOW_MS } from './retry-budget.js';

test('a fifth of the requests may be tried again, and a few in any case', () => {
  let nowMs = 0;
  const budget = new RetryBudget(() => nowMs);
  const retries = (): number => Array.from({ length: 100 }, () => budget.mayRetry()).filter(Boolean).length;
  expect(retries()).toBe(RETRIES_MIN);
  for (let count = 0; count < 250; count += 1) budget.countRequest();
  expect(retries()).toBe(50 - RETRIES_MIN);
  nowMs += 2 * RETRY_WINDOW_MS;
  expect(retries()).toBe(RETRIES_MIN);
});

test('an endpoint that fails leaves the others their retries', () => {
  const budgets = new RetryBudgets(() => 0);
  for (let count = 0; count < 100; count += 1) budgets.of('ep_failing').mayRetry();
  expect([budgets.of('ep_failing').mayRetry(), budgets.of('ep_1').mayRetry()]).toEqual([false, true]);
});
