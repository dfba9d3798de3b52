import { describe, expect, test } from '@jest/globals';
import { engineDefaults, linearStepTime, timingProfile, type EngineParams } from '@penstock/domain-engine-model';
import { simulateTrace } from './simulate-trace.js';

const params: EngineParams = { ...engineDefaults, kvBlocks: 1_000, stepsAhead: 0, modelTokensMax: 2_048, stepTime: linearStepTime({ baseMs: 10, decodeUs: 0, prefillUs: 100, contextNs: 0, attentionNs: 0 }) };

describe('a trace in virtual time', () => {
  test('gives every request its wait, first token, pace and end', () => {
    const { timings } = simulateTrace([{ id: 'a', arrivalMs: 0, promptTokens: 100, outputTokens: 3 }, { id: 'b', arrivalMs: 5, promptTokens: 200, outputTokens: 1 }], params);
    expect(timings).toEqual([
      { id: 'a', arrivalMs: 0, queuedMs: 0, ttftMs: 20, tpotMs: 20, e2eMs: 60, cachedTokens: 0, outputTokens: 3 },
      { id: 'b', arrivalMs: 5, queuedMs: 15, ttftMs: 45, tpotMs: undefined, e2eMs: 45, cachedTokens: 0, outputTokens: 1 },
    ]);
  });

  test('skips the time in which nothing is there, and names what was refused', () => {
    const outcome = simulateTrace([{ id: 'late', arrivalMs: 3_600_000, promptTokens: 10, outputTokens: 1 }, { id: 'long', arrivalMs: 0, promptTokens: 3_000, outputTokens: 1 }], params);
    expect(outcome.timings.map(({ id, ttftMs }) => [id, ttftMs])).toEqual([['late', 11]]);
    expect(outcome.refused).toEqual([{ id: 'long', reason: expect.stringContaining('3001') }]);
    expect(outcome.metrics.steps).toBe(1);
  });

  test('an hour of load on an accelerator takes a moment, and more load means longer waits', () => {
    const { step, kvTokens } = timingProfile('h100-llama-3.1-8b');
    const ttftAt = (everyMs: number): number => {
      const requests = Array.from({ length: 400 }, (_, index) => ({ id: String(index), arrivalMs: index * everyMs, promptTokens: 1_000, outputTokens: 100 }));
      const { timings } = simulateTrace(requests, { ...engineDefaults, kvBlocks: Math.floor(kvTokens / 16), stepTime: linearStepTime(step) });
      return timings.reduce((sum, timing) => sum + timing.ttftMs, 0) / timings.length;
    };
    expect(ttftAt(20)).toBeGreaterThan(2 * ttftAt(9_000));
  });
});
