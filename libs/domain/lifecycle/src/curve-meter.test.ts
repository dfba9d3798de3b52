import { replicaProfileMeasuredV1 } from '@penstock/contract-events';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { classOf, CurveMeter, mergeCurves, saysNews, type CurvePoint, type EngineCounts } from './curve-meter.js';
import { improveKnown, replicaProfileDecider } from './replica-profile.js';

const INTERVAL_MS = 1_000;
const STALL_FACTOR = 50;

interface Load {
  readonly atOnce: number;
  /** Of each request. */
  readonly tokensPerS: number;
  readonly ttftMs: number;
}

/** Counts of an engine whose requests have 100 tokens of prompt and 20 of answer, one look each second. */
class ImaginedEngine {
  counts: EngineCounts = { atMs: 0, atOnce: 0, promptTokens: 0, completionTokens: 0, firstTokens: 0, firstTokenSeconds: 0, tokenGaps: 0, tokenGapSeconds: 0 };

  run({ atOnce, tokensPerS, ttftMs }: Load): EngineCounts {
    const tokens = atOnce * tokensPerS;
    const { counts } = this;
    this.counts = {
      atMs: counts.atMs + INTERVAL_MS, atOnce, promptTokens: counts.promptTokens + tokens * 5, completionTokens: counts.completionTokens + tokens, firstTokens: counts.firstTokens + tokens / 20,
      firstTokenSeconds: counts.firstTokenSeconds + (tokens / 20) * (ttftMs / 1_000), tokenGaps: counts.tokenGaps + tokens, tokenGapSeconds: counts.tokenGapSeconds + atOnce,
    };
    return this.counts;
  }
}

function measure(loads: readonly Load[]): readonly CurvePoint[] {
  const engine = new ImaginedEngine();
  const meter = new CurveMeter();
  for (const load of loads) meter.observe(engine.run(load));
  return meter.points();
}

const steady = (load: Load, seconds: number): readonly Load[] => Array.from({ length: seconds }, () => load);

describe('the curve of an engine', () => {
  test('has throughput and latency for each class of load, with the mean lengths of the requests', () => {
    const points = measure([...steady({ atOnce: 1, tokensPerS: 40, ttftMs: 50 }, 20), ...steady({ atOnce: 8, tokensPerS: 20, ttftMs: 90 }, 20)]);
    expect(points).toEqual([
      { concurrency: 1, requestsPerS: 2, ttftMs: expect.closeTo(50), itlMs: expect.closeTo(25), promptTokens: 100, completionTokens: 20, samples: 17 },
      { concurrency: 8, requestsPerS: 8, ttftMs: expect.closeTo(90), itlMs: expect.closeTo(50), promptTokens: 100, completionTokens: 20, samples: 19 },
    ]);
    expect(() => replicaProfileMeasuredV1.schema.parse({ ...replicaProfileMeasuredV1.example, curve: points })).not.toThrow();
  });

  test('says nothing of what was seen for a moment only, nor of an engine without requests', () => {
    expect(measure([...steady({ atOnce: 1, tokensPerS: 40, ttftMs: 50 }, 5), ...steady({ atOnce: 0, tokensPerS: 0, ttftMs: 0 }, 50)])).toEqual([]);
  });

  test('does not follow a stall, nor an engine that was started again', () => {
    const load: Load = { atOnce: 4, tokensPerS: 20, ttftMs: 50 };
    expect(measure([...steady(load, 20), ...steady({ ...load, ttftMs: load.ttftMs * STALL_FACTOR }, 3), ...steady(load, 20)])[0]).toMatchObject({ ttftMs: expect.closeTo(50) });
    const meter = new CurveMeter();
    for (const engine of [new ImaginedEngine(), new ImaginedEngine()]) for (const one of steady(load, 20)) meter.observe(engine.run(one));
    expect(meter.points()).toMatchObject([{ concurrency: 4, requestsPerS: 4 }]);
  });

  test('is bounded, ascending and says no more than was fed, whatever comes', () => {
    const anyLoad = fc.record({ atOnce: fc.nat(2_000), tokensPerS: fc.integer({ min: 0, max: 500 }), ttftMs: fc.integer({ min: 0, max: 5_000 }) });
    const anyRun = fc.array(fc.tuple(anyLoad, fc.integer({ min: 1, max: 100 })), { maxLength: 10 });
    fc.assert(fc.property(anyRun, (runs) => {
      const points = measure(runs.flatMap(([load, seconds]) => steady(load, seconds)));
      for (const [index, point] of points.entries()) {
        expect(classOf(point.concurrency)).toBeGreaterThan(index === 0 ? -1 : classOf((points[index - 1] as CurvePoint).concurrency));
        expect(point.samples).toBeLessThanOrEqual(64);
        expect(runs.some(([load]) => load.atOnce === point.concurrency)).toBe(true);
      }
    }), { numRuns: 50 });
  });
});

describe('what replicas say of their curve', () => {
  const point: CurvePoint = { concurrency: 4, requestsPerS: 2, ttftMs: 100, itlMs: 20, promptTokens: 100, completionTokens: 20 };
  const started = replicaProfileMeasuredV1.schema.parse(replicaProfileMeasuredV1.example);

  test('is news when a class is new or a figure moved by more than a tenth', () => {
    expect(saysNews([point], [{ ...point, requestsPerS: 2.1, ttftMs: 105, itlMs: 20.4 }])).toBe(false);
    expect(saysNews([point], [{ ...point, itlMs: 25 }])).toBe(true);
    expect(saysNews([point], [{ ...point, concurrency: 64 }])).toBe(true);
    expect(mergeCurves([point], [{ ...point, concurrency: 64 }, { ...point, concurrency: 5 }]).map(({ concurrency }) => concurrency)).toEqual([5, 64]);
  });

  test('is told on top of what the start showed, and only once', () => {
    const command = { kind: 'add-curve', points: [point], kvTokens: 99 } as const;
    expect(replicaProfileDecider.decide(command, null)).toMatchObject({ kind: 'accepted', events: [] });
    expect(replicaProfileDecider.decide(command, started)).toMatchObject({ events: [{ type: 'replica-profile.measured.v1', data: { ...started, kvTokens: started.kvTokens, curve: [point] } }] });
    expect(replicaProfileDecider.decide(command, { ...started, curve: [point] })).toMatchObject({ events: [] });
  });

  test('outlives the replica: one that has just started takes nothing away, and each point keeps whose it is', () => {
    const known = improveKnown(undefined, { ...started, curve: [point] });
    const next = improveKnown(known, { ...started, replicaId: 'rep_02', kvTokens: null });
    expect(next).toMatchObject({ replicaId: 'rep_02', kvTokens: started.kvTokens, curve: [{ ...point, replicaId: 'rep_01' }] });
    expect(improveKnown(next, { ...started, replicaId: 'rep_02', curve: [{ ...point, itlMs: 30 }] }).curve).toMatchObject([{ itlMs: 30, replicaId: 'rep_02' }]);
  });
});
