import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HEDGED_SHARE_MAX, HEDGE_PROMPT_TOKENS_MAX, HedgePolicy } from './hedge-policy.js';
import { RetryBudgets } from './retry-budget.js';

const policy = (): HedgePolicy => {
  const retries = new RetryBudgets(() => 0);
  for (let request = 0; request < 100_000; request += 1) retries.of('ep_1').countRequest();
  return new HedgePolicy(retries);
};

test('second attempts are never more than their share of the requests of an endpoint', () => {
  fc.assert(fc.property(fc.array(fc.boolean(), { maxLength: 2_000 }), (late) => {
    const hedges = policy();
    let [requests, made] = [0, 0];
    for (const isLate of late) {
      hedges.begin('ep_1', 10);
      requests += 1;
      if (isLate && hedges.mayHedge('ep_1')) made += 1;
      expect(made).toBeLessThanOrEqual(requests * HEDGED_SHARE_MAX);
    }
  }), { numRuns: 20 });
});

test('the time to wait is the 95th percentile of what was seen, once enough was; never for a long prompt', () => {
  const hedges = policy();
  for (let ms = 1; ms <= 19; ms += 1) hedges.observe('ep_1', ms * 100);
  expect(hedges.begin('ep_1', 10)).toBeUndefined();
  hedges.observe('ep_1', 2_000);
  expect(hedges.begin('ep_1', 10)).toBe(1_900);
  expect(hedges.begin('ep_1', HEDGE_PROMPT_TOKENS_MAX + 1)).toBeUndefined();
  expect(hedges.begin('ep_2', 10)).toBeUndefined();
});

test('a budget of retries that is used up leaves none', () => {
  const hedges = new HedgePolicy(new RetryBudgets(() => 0));
  for (let request = 0; request < 1_000; request += 1) hedges.begin('ep_1', 1);
  expect(Array.from({ length: 50 }, () => hedges.mayHedge('ep_1')).filter(Boolean)).toHaveLength(30);
});
