import { describe, expect, test } from '@jest/globals';
import { engineDefaults, linearStepTime, timingProfile, type EngineParams } from '@penstock/domain-engine-model';
import { simulateFleetTrace } from './simulate-fleet-trace.js';
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

describe('a trace over several engines', () => {
  const request = (id: string, arrivalMs: number) => ({ id, arrivalMs, promptTokens: 320, outputTokens: 2, contentKeys: Array.from({ length: 20 }, (_, block) => block + 1) });

  test('each engine works on what the router sent it, and the router hears of every end in its time', () => {
    const ended: string[] = [];
    const outcome = simulateFleetTrace([request('a', 0), request('b', 0), request('c', 500)], [params, params], {
      choose: ({ id }) => (id === 'b' ? 1 : 0),
      ended: ({ id }, engine, nowMs) => void ended.push(`${id} on ${engine} at ${nowMs}`),
    });
    expect(ended).toEqual(['a on 0 at 52', 'b on 1 at 52', 'c on 0 at 521.6']);
    expect(outcome.timings.map(({ id, ttftMs, cachedTokens }) => [id, ttftMs, cachedTokens])).toEqual([['a', 42, 0], ['b', 42, 0], ['c', expect.closeTo(11.6, 6), 304]]);
    expect(outcome.metrics.map(({ steps }) => steps)).toEqual([4, 2]);
  });

  test('a router sees what an engine has cached, and may keep a request out', () => {
    const seen: number[] = [];
    const outcome = simulateFleetTrace([request('a', 0), request('b', 500), request('c', 900)], [params], {
      choose: (asked, _nowMs, engines) => {
        seen.push(engines[0]?.cachedTokens(asked) ?? -1);
        return asked.id === 'c' ? undefined : 0;
      },
    });
    expect(seen).toEqual([0, 304, 304]);
    expect(outcome.refused).toEqual([{ id: 'c', reason: 'The router named no engine.' }]);
  });
});
