import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HEDGED_SHARE_MAX, HEDGE_ANSWER_TOKENS_MAX, HEDGE_PROMPT_TOKENS_MAX, HedgePolicy } from './hedge-policy.js';
import { RetryBudgets } from '../chat/retry-budget.js';

const short = { promptTokens: 10, answerTokens: 0 };

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
      hedges.begin('ep_1', 'first-token', short);
      requests += 1;
      if (isLate && hedges.mayHedge('ep_1')) made += 1;
      expect(made).toBeLessThanOrEqual(requests * HEDGED_SHARE_MAX);
    }
  }), { numRuns: 20 });
});

test('the time to wait is the 95th percentile of what was seen, once enough was; never for a long prompt', () => {
  const hedges = policy();
  for (let ms = 1; ms <= 19; ms += 1) hedges.observe('ep_1', 'first-token', ms * 100);
  expect(hedges.begin('ep_1', 'first-token', short)).toBeUndefined();
  hedges.observe('ep_1', 'first-token', 2_000);
  expect(hedges.begin('ep_1', 'first-token', short)).toBe(1_900);
  expect(hedges.begin('ep_1', 'first-token', { ...short, promptTokens: HEDGE_PROMPT_TOKENS_MAX + 1 })).toBeUndefined();
  expect(hedges.begin('ep_2', 'first-token', short)).toBeUndefined();
});

test('whole answers are waited for by their own times, each kind of work by its own, and never written twice where they may be long', () => {
  const hedges = policy();
  for (let answer = 0; answer < 20; answer += 1) {
    hedges.observe('ep_1', 'first-token', 50);
    hedges.observe('ep_1', 'chat', 4_000);
    hedges.observe('ep_1', 'embeddings', 3);
  }
  const whole = { promptTokens: 10, answerTokens: HEDGE_ANSWER_TOKENS_MAX };
  expect([hedges.begin('ep_1', 'first-token', short), hedges.begin('ep_1', 'chat', whole), hedges.begin('ep_1', 'embeddings', short)]).toEqual([50, 4_000, 20]);
  expect(hedges.begin('ep_1', 'chat', { ...whole, answerTokens: HEDGE_ANSWER_TOKENS_MAX + 1 })).toBeUndefined();
  expect(hedges.begin('ep_1', 'completions', whole)).toBeUndefined();
});

test('a budget of retries that is used up leaves none', () => {
  const hedges = new HedgePolicy(new RetryBudgets(() => 0));
  for (let request = 0; request < 1_000; request += 1) hedges.begin('ep_1', 'first-token', short);
  expect(Array.from({ length: 50 }, () => hedges.mayHedge('ep_1')).filter(Boolean)).toHaveLength(30);
});
