import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MIG_GEOMETRIES } from './mig-geometries.js';
import { layoutProblems, type MigGeometry } from './mig-geometry.js';
import { bestStart } from './mig-layouts.js';
import { applyMigStep, planTransition, type LiveInstance, type MigGpu, type TransitionPrices } from './mig-transition.js';

const a100 = MIG_GEOMETRIES.find((geometry) => geometry.gpuType === 'A100-80GB') as MigGeometry;
const PROFILES = ['1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'];
const prices: TransitionPrices = { perMove: () => 0.5, benefitPerHour: 1, horizonHours: 4 };
const live = (profile: string, start: number, replicaId: string | null): LiveInstance => ({ profile, start, replicaId });

const fleets = fc.array(fc.array(fc.record({ pick: fc.nat(4), used: fc.boolean() }), { maxLength: 7 }), { minLength: 1, maxLength: 4 }).map((gpus) =>
  gpus.map((wishes, index): MigGpu => {
    const instances: LiveInstance[] = [];
    for (const [at, { pick, used }] of wishes.entries()) {
      const instance = bestStart(a100, instances, PROFILES[pick] as string);
      if (instance !== undefined) instances.push({ ...instance, replicaId: used ? `r${index}-${at}` : null });
    }
    return { gpuId: `gpu-${index}`, instances };
  }));

const replicasOf = (gpus: readonly MigGpu[]): readonly string[] => gpus.flatMap((gpu) => gpu.instances.flatMap((one) => one.replicaId ?? [])).sort();

describe('changing a layout', () => {
  test('after every step each layout is legal and each replica has exactly one instance', () => {
    fc.assert(
      fc.property(fleets, fc.constantFrom(...PROFILES), (gpus, wanted) => {
        const plan = planTransition(a100, gpus, wanted, { ...prices, benefitPerHour: 1_000 });
        if (plan.kind === 'refused') return;
        let now: readonly MigGpu[] = gpus;
        for (const step of plan.steps) {
          now = applyMigStep(a100, now, step);
          for (const gpu of now) expect(layoutProblems(a100, gpu.instances)).toEqual([]);
          expect(replicasOf(now)).toEqual(replicasOf(gpus));
        }
        const count = (all: readonly MigGpu[]): number => all.flatMap((gpu) => gpu.instances).filter((one) => one.profile === wanted && one.replicaId === null).length;
        expect(count(now)).toBeGreaterThan(0);
      }),
    );
  });

  test('where there is room already nothing moves, and the small instance goes to the end', () => {
    const plan = planTransition(a100, [{ gpuId: 'a', instances: [] }], '1g.10gb', prices);
    expect(plan).toMatchObject({ kind: 'steps', costDollars: 0, steps: [{ kind: 'create', gpuId: 'a', instance: { profile: '1g.10gb', start: 6 } }] });
  });

  test('a replica in the way starts elsewhere before its instance goes', () => {
    const gpus = [{ gpuId: 'a', instances: [live('1g.10gb', 0, 'r1'), live('3g.40gb', 4, 'r2')] }, { gpuId: 'b', instances: [live('4g.40gb', 0, 'r3'), live('2g.20gb', 4, 'r4')] }];
    expect(planTransition(a100, gpus, '4g.40gb', prices)).toEqual({
      kind: 'steps', gpuId: 'a', costDollars: 0.5, benefitDollars: 4,
      steps: [
        { kind: 'create', gpuId: 'b', instance: { profile: '1g.10gb', start: 6 }, forReplicaId: 'r1' },
        { kind: 'move', replicaId: 'r1', fromGpuId: 'a', from: { profile: '1g.10gb', start: 0 }, toGpuId: 'b', to: { profile: '1g.10gb', start: 6 } },
        { kind: 'destroy', gpuId: 'a', instance: { profile: '1g.10gb', start: 0 } },
        { kind: 'create', gpuId: 'a', instance: { profile: '4g.40gb', start: 0 }, forReplicaId: null },
      ],
    });
  });

  test('refused when the drains cost more than the instance brings, when nothing makes room, and for a profile the GPU lacks', () => {
    const gpus = [{ gpuId: 'a', instances: [live('1g.10gb', 0, 'r1')] }, { gpuId: 'b', instances: [live('4g.40gb', 0, 'r2')] }];
    expect(planTransition(a100, gpus, '7g.80gb', { ...prices, perMove: () => 5 })).toEqual({ kind: 'refused', reason: 'making room for 7g.80gb costs 5.00 dollars of drains and brings 4.00' });
    const full = [{ gpuId: 'a', instances: [live('7g.80gb', 0, 'r1')] }];
    expect(planTransition(a100, full, '1g.10gb', prices)).toEqual({ kind: 'refused', reason: 'no GPU can make room for 1g.10gb, not even with its replicas moved: add a GPU' });
    expect(planTransition(a100, full, '5g.60gb', prices)).toMatchObject({ kind: 'refused', reason: expect.stringContaining('A100-80GB has no profile 5g.60gb') });
  });

  test('a step that would break something is refused by itself', () => {
    const gpus = [{ gpuId: 'a', instances: [live('1g.10gb', 0, 'r1')] }];
    expect(() => applyMigStep(a100, gpus, { kind: 'destroy', gpuId: 'a', instance: { profile: '1g.10gb', start: 0 } })).toThrow('cannot be destroyed');
    expect(() => applyMigStep(a100, gpus, { kind: 'create', gpuId: 'a', instance: { profile: '4g.40gb', start: 0 }, forReplicaId: null })).toThrow('slice 0 is taken twice');
  });
});
