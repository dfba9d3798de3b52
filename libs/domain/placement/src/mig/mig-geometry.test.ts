import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MIG_GEOMETRIES } from './mig-geometries.js';
import { canAdd, layoutProblems, type MigGeometry, type MigLayout } from './mig-geometry.js';
import { bestStart, layOut, legalMultisetCount, maximalLayouts, maximalMultisets } from './mig-layouts.js';

const a100 = MIG_GEOMETRIES.find((geometry) => geometry.gpuType === 'A100-80GB') as MigGeometry;
const FIVE = ['1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'];
const SIX = ['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'];

describe('MIG geometry', () => {
  test('the legal layouts are the published ones', () => {
    expect([legalMultisetCount(a100, FIVE), maximalMultisets(a100, FIVE).length, maximalLayouts(a100, FIVE).length]).toEqual([37, 12, 19]);
    expect([legalMultisetCount(a100, SIX), maximalMultisets(a100, SIX).length, maximalLayouts(a100, SIX).length]).toEqual([77, 28, 78]);
  });

  test('two 3g fill the memory, so that the seventh compute slice is lost', () => {
    const layout: MigLayout = [{ profile: '3g.40gb', start: 0 }, { profile: '3g.40gb', start: 4 }];
    expect(layoutProblems(a100, layout)).toEqual([]);
    expect(bestStart(a100, layout, '1g.10gb')).toBeUndefined();
    expect(layOut(a100, ['3g.40gb', '3g.40gb', '1g.10gb'])).toBeUndefined();
  });

  test('small instances go where a 4g stays possible', () => {
    let layout: MigLayout = [];
    for (const expected of [6, 5, 4]) {
      const instance = bestStart(a100, layout, '1g.10gb');
      expect(instance).toEqual({ profile: '1g.10gb', start: expected });
      layout = [...layout, { profile: '1g.10gb', start: expected }];
    }
    expect(canAdd(a100, layout, { profile: '4g.40gb', start: 0 })).toBe(true);
  });

  test('a layout that no driver takes is explained', () => {
    expect(layoutProblems(a100, [{ profile: '2g.20gb', start: 1 }])).toEqual(['2g.20gb cannot begin at slice 1, only at 0, 2, 4']);
    expect(layoutProblems(a100, [{ profile: '4g.40gb', start: 0 }, { profile: '1g.10gb', start: 3 }])).toEqual(['slice 3 is taken twice, by 4g.40gb and 1g.10gb']);
    expect(layoutProblems(a100, [{ profile: '2g.10gb', start: 0 }])[0]).toContain('A100-80GB has no profile 2g.10gb; it has 1g.10gb');
    expect(layoutProblems(a100, [0, 1].map((start) => ({ profile: '1g.10gb+me', start })))).toContain('more than one instance has media extensions');
  });

  test('every geometry is consistent with itself, and memory is never more than the nominal size', () => {
    for (const geometry of MIG_GEOMETRIES) {
      for (const profile of geometry.profiles) {
        const nominalMib = Number(/(\d+)gb/.exec(profile.name)?.[1]) * 1_024;
        expect(profile.usableMib).toBeLessThanOrEqual(nominalMib);
        for (const start of profile.starts) expect(layoutProblems(geometry, [{ profile: profile.name, start }])).toEqual([]);
      }
    }
  });

  test('whatever is added at its best start stays legal', () => {
    fc.assert(
      fc.property(fc.constantFrom(...MIG_GEOMETRIES), fc.array(fc.nat(6), { maxLength: 12 }), (geometry, picks) => {
        let layout: MigLayout = [];
        for (const pick of picks) {
          const name = geometry.profiles[pick % geometry.profiles.length]?.name ?? '';
          const instance = bestStart(geometry, layout, name);
          if (instance !== undefined) layout = [...layout, instance];
        }
        expect(layoutProblems(geometry, layout)).toEqual([]);
      }),
    );
  });
});
