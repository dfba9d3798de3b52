import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { contentKeys } from './block-keys.js';
import { createEngineModel, type EngineModel, type StepResult } from './engine-model.js';
import { engineDefaults, type EngineParams } from './engine-params.js';
import { linearStepTime } from './step-time.js';

const stepTime = linearStepTime({ baseMs: 10, decodeUs: 100, prefillUs: 20, contextNs: 50, attentionNs: 1 });

function engine(overrides: Partial<EngineParams> = {}): EngineModel {
  return createEngineModel({ ...engineDefaults, kvBlocks: 1_000, modelTokensMax: 1_024, stepsAhead: 0, stepTime, ...overrides });
}

function step(model: EngineModel): StepResult {
  const result = model.step(0);
  if (result === undefined || 'outOfMemory' in result) throw new Error('no step was run');
  return result;
}

/** Runs until nothing is to do. */
function drain(model: EngineModel, stepsMax = 100_000): StepResult[] {
  const steps: StepResult[] = [];
  for (let result = model.step(0); result !== undefined; result = model.step(0)) {
    if ('outOfMemory' in result) throw new Error('out of memory');
    steps.push(result);
    if (steps.length > stepsMax) throw new Error('the engine does not come to an end');
  }
  return steps;
}

const tokenList = (count: number, first = 0): number[] => Array.from({ length: count }, (_, index) => first + index);

describe('one sequence', () => {
  test('its prompt comes in chunks of the token budget, and the last chunk gives the first token', () => {
    const model = engine({ batchTokensMax: 100 });
    model.submit({ id: 'a', promptTokens: 250, outputTokens: 3 }, 0);
    const steps = drain(model);
    expect(steps.map(({ load }) => load)).toEqual([
      { prefills: [{ tokens: 100, cachedTokens: 0 }], decodeContexts: [] },
      { prefills: [{ tokens: 100, cachedTokens: 100 }], decodeContexts: [] },
      { prefills: [{ tokens: 50, cachedTokens: 200 }], decodeContexts: [] },
      { prefills: [], decodeContexts: [250] },
      { prefills: [], decodeContexts: [251] },
    ]);
    expect(steps.map(({ tokens }) => tokens.length)).toEqual([0, 0, 1, 1, 1]);
    expect(steps[2]?.tokens[0]).toMatchObject({ id: 'a', isFirst: true, isLast: false });
    expect(steps.at(-1)?.finished).toEqual(['a']);
    expect(steps[3]?.durationMs).toBeCloseTo(10 + 0.1 + 250 * 50e-6, 9);
  });

  test('planned a step ahead it takes the same steps', () => {
    const [behind, ahead] = [engine(), engine({ stepsAhead: 1 })];
    for (const model of [behind, ahead]) model.submit({ id: 'a', promptTokens: 250, outputTokens: 5 }, 0);
    expect(drain(ahead)).toEqual(drain(behind));
  });
});

test('running sequences go first, then the waiting share what is left of the budget and of the slots', () => {
  const model = engine({ batchTokensMax: 64, sequencesMax: 2 });
  model.submit({ id: 'a', promptTokens: 10, outputTokens: 10 }, 0);
  step(model);
  for (const id of ['b', 'c']) model.submit({ id, promptTokens: 100, outputTokens: 10 }, 0);
  expect(step(model).load).toEqual({ prefills: [{ tokens: 63, cachedTokens: 0 }], decodeContexts: [10] });
  expect(model.metrics()).toMatchObject({ running: 2, waiting: 1 });
});

describe('the prefix cache', () => {
  const keys = contentKeys(tokenList(64), engineDefaults.blockTokens);
  const submit = (model: EngineModel, id: string, scope: { salt?: string; adapter?: string } = {}): number => {
    model.submit({ id, promptTokens: 64, outputTokens: 1, contentKeys: keys, scope }, 0);
    return drain(model).flatMap(({ tokens }) => tokens)[0]?.cachedTokens ?? -1;
  };

  test('finds what was computed before, all but the block of the last token', () => {
    const model = engine();
    expect([submit(model, 'a'), submit(model, 'b')]).toEqual([0, 48]);
    expect(model.metrics()).toMatchObject({ prefixQueriedTokens: 128, prefixHitTokens: 48, kvUsage: 0 });
  });

  test('keeps salts and adapters apart', () => {
    const model = engine({ adapterSlots: 2 });
    const scopes = [{}, { salt: 's' }, { adapter: 'l' }, { salt: 's', adapter: 'l' }];
    expect(scopes.map((scope, index) => submit(model, `first-${index}`, scope))).toEqual([0, 0, 0, 0]);
    expect(scopes.map((scope, index) => submit(model, `again-${index}`, scope))).toEqual([48, 48, 48, 48]);
  });

  test('gives up what was not used for longest, the end of a prompt before its beginning', () => {
    const model = engine({ kvBlocks: 6, modelTokensMax: 96 });
    submit(model, 'a');
    model.submit({ id: 'other', promptTokens: 63, outputTokens: 1 }, 0);
    drain(model);
    expect(submit(model, 'b')).toBe(32);
  });

  test('can be off', () => {
    const model = engine({ prefixCaching: false });
    expect([submit(model, 'a'), submit(model, 'b'), model.metrics().prefixQueriedTokens]).toEqual([0, 0, 0]);
  });
});

describe('a full cache', () => {
  const crowd = (model: EngineModel): void => {
    for (const id of ['a', 'b', 'c']) model.submit({ id, promptTokens: 60, outputTokens: 100 }, 0);
  };

  test('throws the youngest back; its tokens are computed again and none is produced twice', () => {
    const model = engine({ kvBlocks: 14, modelTokensMax: 200 });
    crowd(model);
    const steps = drain(model);
    expect(steps.find(({ preempted }) => preempted.length > 0)?.preempted).toEqual(['c']);
    const produced = steps.flatMap(({ tokens }) => tokens);
    for (const id of ['a', 'b', 'c']) {
      expect(produced.filter((token) => token.id === id)).toHaveLength(100);
      expect(produced.filter((token) => token.id === id && token.isFirst)).toHaveLength(1);
    }
    expect(model.metrics()).toMatchObject({ kvBlocksUsed: 0, running: 0, waiting: 0 });
  });

  test('or ends the engine, which names what it lost and takes nothing more', () => {
    const model = engine({ kvBlocks: 14, modelTokensMax: 200, whenCacheIsFull: 'out-of-memory' });
    crowd(model);
    let result = model.step(0);
    while (result !== undefined && !('outOfMemory' in result)) result = model.step(0);
    expect(result).toEqual({ outOfMemory: true, failed: ['a', 'b', 'c'] });
    expect(model.step(0)).toBeUndefined();
    expect(model.submit({ id: 'd', promptTokens: 1, outputTokens: 1 }, 0)).toMatchObject({ kind: 'refused', reason: expect.stringContaining('out of memory') });
  });
});

test('a sequence whose adapter finds no slot waits without holding up the others, and bringing one in takes time', () => {
  const model = engine({ adapterSlots: 1, adapterLoadMs: 500 });
  for (const [id, adapter] of [['a', 'x'], ['b', 'y'], ['c', 'x']] as const) model.submit({ id, promptTokens: 10, outputTokens: 5, scope: { adapter } }, 0);
  const first = step(model);
  expect(first.tokens.map(({ id }) => id)).toEqual(['a', 'c']);
  expect(first.durationMs).toBeGreaterThan(500);
  expect(step(model).durationMs).toBeLessThan(20);
  const rest = drain(model);
  expect(rest.flatMap(({ finished }) => finished)).toEqual(['a', 'c', 'b']);
  expect(model.metrics().residentAdapters).toEqual(['y']);
});

test('what cannot be taken is refused with the reason, and a full queue says so', () => {
  const model = engine({ waitingMax: 1 });
  const reasonOf = (request: { id?: string; promptTokens?: number; outputTokens?: number; scope?: { adapter: string } }): unknown => model.submit({ id: 'x', promptTokens: 10, outputTokens: 10, ...request }, 0);
  expect(reasonOf({ promptTokens: 1_020 })).toMatchObject({ kind: 'refused', reason: expect.stringContaining('1030') });
  expect(reasonOf({ outputTokens: 0 })).toMatchObject({ kind: 'refused', reason: expect.stringContaining('outputTokens is 0') });
  expect(reasonOf({ scope: { adapter: 'l' } })).toMatchObject({ kind: 'refused', reason: expect.stringContaining('adapterSlots') });
  expect(reasonOf({})).toEqual({ kind: 'queued' });
  expect(reasonOf({})).toMatchObject({ kind: 'refused', reason: expect.stringContaining('own id') });
  expect(reasonOf({ id: 'y' })).toEqual({ kind: 'queue-full' });
});

test.each([{ kvBlocks: 10 }, { blockTokens: 0 }, { jitter: 1 }, { sequencesMax: 1.5 }])('parameters that make no engine are refused: %j', (wrong) => {
  expect(() => engine(wrong)).toThrow(/give|lower modelTokensMax/);
});

describe('whatever comes and goes', () => {
  const request = fc.record({ prompt: fc.integer({ min: 1, max: 120 }), output: fc.integer({ min: 1, max: 60 }), family: fc.nat({ max: 3 }), adapter: fc.option(fc.constantFrom('x', 'y', 'z')), cancelAfter: fc.option(fc.nat({ max: 40 })), arrival: fc.nat({ max: 60 }) });
  const settings = fc.record({ kvBlocks: fc.integer({ min: 12, max: 40 }), batchTokensMax: fc.integer({ min: 1, max: 200 }), sequencesMax: fc.integer({ min: 1, max: 8 }), stepsAhead: fc.constantFrom(0 as const, 1 as const), reserveWholePrompt: fc.boolean(), prefixCaching: fc.boolean(), jitter: fc.constantFrom(0, 0.1) });

  const runAll = (requests: readonly (typeof request extends fc.Arbitrary<infer Value> ? Value : never)[], params: Partial<EngineParams>) => {
    const model = engine({ ...params, modelTokensMax: 190, adapterSlots: 2 });
    const produced = new Map<string, number>();
    const cancelled = new Set<string>();
    const durations: number[] = [];
    for (let turn = 0; ; turn += 1) {
      requests.forEach(({ prompt, output, family, adapter, arrival }, index) => {
        if (arrival === turn) expect(model.submit({ id: String(index), promptTokens: prompt, outputTokens: output, contentKeys: contentKeys(tokenList(prompt, family * 1_000), 16), ...(adapter === null ? {} : { scope: { adapter } }) }, turn).kind).toBe('queued');
        if (cancelledAt(requests[index]) === turn && model.cancel(String(index))) cancelled.add(String(index));
      });
      const result = model.step(turn);
      if (result !== undefined && !('outOfMemory' in result)) {
        durations.push(result.durationMs);
        const { prefills, decodeContexts } = result.load;
        expect(prefills.reduce((sum, chunk) => sum + chunk.tokens, 0) + decodeContexts.length).toBeLessThanOrEqual(params.batchTokensMax ?? 0);
        for (const { id } of result.tokens) produced.set(id, (produced.get(id) ?? 0) + 1);
      } else if (turn > 110) break;
      expect(model.metrics().running).toBeLessThanOrEqual(params.sequencesMax ?? 0);
      expect(turn).toBeLessThan(20_000);
    }
    return { model, produced, cancelled, durations };
  };
  const cancelledAt = (wanted: { cancelAfter: number | null; arrival: number } | undefined): number | undefined => (wanted === undefined || wanted.cancelAfter === null ? undefined : wanted.arrival + wanted.cancelAfter);

  test('every sequence gets exactly its tokens unless it was cancelled, no limit is passed, and nothing is left behind', () => {
    fc.assert(fc.property(fc.array(request, { maxLength: 12 }), settings, (requests, params) => {
      const { model, produced, cancelled } = runAll(requests, params);
      requests.forEach(({ output }, index) => {
        if (!cancelled.has(String(index))) expect(produced.get(String(index))).toBe(output);
        else expect(produced.get(String(index)) ?? 0).toBeLessThanOrEqual(output);
      });
      expect(model.metrics()).toMatchObject({ running: 0, waiting: 0, kvBlocksUsed: 0 });
    }), { numRuns: 150 });
  });

  test('the same calls with the same seed give the same run', () => {
    fc.assert(fc.property(fc.array(request, { maxLength: 8 }), settings, (requests, params) => {
      expect(runAll(requests, params).durations).toEqual(runAll(requests, params).durations);
    }), { numRuns: 30 });
  });
});
