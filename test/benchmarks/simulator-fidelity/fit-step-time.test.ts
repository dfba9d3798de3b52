import { expect, test } from '@jest/globals';
import type { LinearStepTime } from '@penstock/domain-engine-model';
import { fitStepTime, heldOutError, predictTpotMs } from './fit-step-time.js';

const truth: LinearStepTime = { baseMs: 8, decodeUs: 20, prefillUs: 25, contextNs: 60, attentionNs: 1 };
const prior: LinearStepTime = { baseMs: 6, decodeUs: 30, prefillUs: 20, contextNs: 80, attentionNs: 2 };
const points = [1_024, 2_048, 4_096].flatMap((promptTokens) => [128, 256, 512].flatMap((outputTokens) => [8, 32, 128].map((concurrency) => {
  const point = { promptTokens, outputTokens, concurrency, sequencesMax: 100, ttftMs: 15 * concurrency, tpotMs: 1 };
  return { ...point, tpotMs: predictTpotMs(point, truth) };
})));

test('a fit finds what made the points, and predicts shapes that it has not seen', () => {
  const fit = fitStepTime(points, prior);
  for (const point of points) expect(Math.abs(predictTpotMs(point, fit) / point.tpotMs - 1)).toBeLessThan(0.02);
  expect(heldOutError(points, prior)).toMatchObject({ points: 27, shapes: 9 });
  expect(heldOutError(points, prior).mapePct).toBeLessThan(1.5);
});

test('requests that wait for their first token do not decode, and no more decode than the cache holds', () => {
  const point = { promptTokens: 1_024, outputTokens: 256, concurrency: 128, sequencesMax: 1_000, ttftMs: 100, tpotMs: 1 };
  const busy = predictTpotMs(point, truth);
  const waiting = predictTpotMs({ ...point, ttftMs: 5_000 }, truth);
  const full = predictTpotMs({ ...point, sequencesMax: 20 }, truth);
  expect(waiting).toBeLessThan(busy * 0.8);
  expect(full).toBeLessThan(waiting);
  expect(predictTpotMs({ ...point, tpotMs: 99 }, truth)).toBe(busy);
});
