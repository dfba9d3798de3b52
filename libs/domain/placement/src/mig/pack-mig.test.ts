import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bestOptions, type MigDemand } from './mig-demand.js';
import { MIG_GEOMETRIES } from './mig-geometries.js';
import { layoutProblems, type MigGeometry } from './mig-geometry.js';
import { migProgram } from './mig-program.js';
import { packMig } from './pack-mig.js';

const h100 = MIG_GEOMETRIES.find((geometry) => geometry.gpuType === 'H100-80GB-SXM') as MigGeometry;
const PROFILES = ['1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'];

const demands = fc.array(fc.record({ rate: fc.integer({ min: 0, max: 900 }), speeds: fc.array(fc.integer({ min: 20, max: 60 }), { minLength: 5, maxLength: 5 }) }), { minLength: 1, maxLength: 6 }).map((models) =>
  models.map(({ rate, speeds }, index): MigDemand => ({ id: `model-${index}`, rate, options: PROFILES.map((profile, at) => ({ profile, rate: (speeds[at] as number) * Number(profile[0]), batch: 1, processes: 1 })) })));

describe('packing a GPU type', () => {
  test('every packing is legal, serves every demand, and knows a bound below it', () => {
    fc.assert(
      fc.property(demands, (wanted) => {
        const packing = packMig(h100, wanted);
        for (const gpu of packing.gpus) expect(layoutProblems(h100, gpu)).toEqual([]);
        for (const demand of wanted) {
          const rate = packing.gpus.flat().filter((one) => one.demand === demand.id).reduce((sum, one) => sum + one.option.rate, 0);
          expect(rate).toBeGreaterThanOrEqual(demand.rate * (1 - 1e-6));
        }
        expect(packing.gpus.length).toBeGreaterThanOrEqual(packing.lowerBound);
        expect(packMig(h100, wanted)).toEqual(packing);
      }),
      { numRuns: 40 },
    );
  });

  test('a setting counts only under the latency limit, and the fastest of those is taken', () => {
    const measured = [
      { profile: '1g.10gb', batch: 1, processes: 1, rate: 50, latencyMs: 20 },
      { profile: '1g.10gb', batch: 4, processes: 1, rate: 90, latencyMs: 45 },
      { profile: '1g.10gb', batch: 8, processes: 1, rate: 120, latencyMs: 90 },
      { profile: '2g.20gb', batch: 8, processes: 1, rate: 0, latencyMs: 0 },
    ];
    expect(bestOptions(measured, 50)).toEqual([{ profile: '1g.10gb', rate: 90, batch: 4, processes: 1 }]);
  });

  test('what cannot be met is refused with what would help', () => {
    expect(() => packMig(h100, [{ id: 'slow', rate: 1, options: [] }])).toThrow('slow: no profile of H100-80GB-SXM meets the latency objective');
    expect(() => packMig(h100, [{ id: 'odd', rate: 1, options: [{ profile: '5g.60gb', rate: 1, batch: 1, processes: 1 }] }])).toThrow('has no profile 5g.60gb; it has 1g.10gb');
  });

  test('the program reads its own values back as legal GPUs', () => {
    const option = { profile: '3g.40gb', rate: 10, batch: 1, processes: 1 };
    const { program, read } = migProgram(h100, [{ id: 'm', rate: 30, options: [option] }]);
    const values = program.variables.map((variable) => (variable.name.startsWith('use:') ? 3 : 2));
    const gpus = read(values);
    expect(gpus.map((gpu) => gpu.length)).toEqual([2, 1]);
    for (const gpu of gpus) expect(layoutProblems(h100, gpu)).toEqual([]);
  });
});
