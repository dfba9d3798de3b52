import { expect, test } from '@jest/globals';
import { answerLimitsOf } from './answer-limits.js';
import { platformEngineOptions } from './serving-pace.js';

test('an endpoint has its own limits where they are whole numbers within bounds, and no engine is started with them', () => {
  const byDefault = { firstTokenMs: 120_000, chunkGapMs: 60_000, totalMs: 600_000 };
  expect(answerLimitsOf({ engineOptions: {} }, byDefault)).toEqual(byDefault);
  expect(answerLimitsOf({ engineOptions: { first_token_timeout_ms: 5_000, chunk_gap_timeout_ms: 2_000, total_timeout_ms: 30_000 } }, byDefault)).toEqual({ firstTokenMs: 5_000, chunkGapMs: 2_000, totalMs: 30_000 });
  expect(answerLimitsOf({ engineOptions: { first_token_timeout_ms: 0, chunk_gap_timeout_ms: '2000', total_timeout_ms: 3_600_001 } }, byDefault)).toEqual(byDefault);
  expect(platformEngineOptions).toEqual(expect.arrayContaining(['first_token_timeout_ms', 'chunk_gap_timeout_ms', 'total_timeout_ms']));
});
