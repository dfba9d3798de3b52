import { describe, expect, test } from '@jest/globals';
import { planRepack, type RepackGpu, type RepackOptions } from '@penstock/domain-placement';
import { HighsOptimiser } from './highs-optimiser.js';

const item = (id: string, computeMilli: number, moveDollars = 0.1): RepackGpu['items'][number] => ({ id, computeMilli, vramMib: computeMilli * 10, moveDollars });
const gpu = (gpuId: string, items: RepackGpu['items'], part: Partial<RepackGpu> = {}): RepackGpu => {
  const used = items.reduce((sum, one) => sum + one.computeMilli, 0);
  return { gpuId, pricePerHour: 2, computeFree: 1_000 - used, vramFree: 10_000 - used * 10, items, mayBeEmptied: true, ...part };
};
const options: RepackOptions = { horizonHours: 1, mayRunOn: () => true, limits: { timeMs: 10_000, gap: 0 } };

describe('repacking with the real optimiser', () => {
  const optimiser = new HighsOptimiser();
  // Two GPUs are enough for 300 + 700 and 400 + 600; emptying one at a time into the roomiest gap finds only one.
  const fleet = [gpu('a', [item('a1', 300)]), gpu('b', [item('b1', 400)]), gpu('c', [item('c1', 600)]), gpu('d', [item('d1', 700)])];

  test('empties as many GPUs as can be, and no GPU both gives and takes', async () => {
    const plan = await planRepack(fleet, optimiser, options);
    expect(plan.emptiedGpuIds).toHaveLength(2);
    expect(plan.moves.map((move) => move.fromGpuId).sort()).toEqual(plan.emptiedGpuIds);
    for (const target of fleet) {
      const incoming = plan.moves.filter((move) => move.toGpuId === target.gpuId).map((move) => fleet.flatMap((one) => one.items).find((one) => one.id === move.id)?.computeMilli ?? 0);
      expect(incoming.reduce((sum, milli) => sum + milli, 0)).toBeLessThanOrEqual(plan.emptiedGpuIds.includes(target.gpuId) ? 0 : target.computeFree);
    }
    expect(plan.gainDollars).toBeCloseTo(3.8);
    expect(plan.gainBoundDollars).toBeCloseTo(3.8);
  });

  test('proposes nothing when the drains cost more than they save, and says so', async () => {
    const dear = fleet.map((one) => ({ ...one, items: one.items.map((each) => ({ ...each, moveDollars: 5 })) }));
    expect(await planRepack(dear, optimiser, options)).toMatchObject({ moves: [], gainDollars: 0, reason: 'the drains cost more than the freed GPUs save' });
  });

  test('what may not move or may not run somewhere stays', async () => {
    const plan = await planRepack([gpu('a', [item('a1', 300)], { mayBeEmptied: false }), ...fleet.slice(1)], optimiser, { ...options, mayRunOn: (_, gpuId) => gpuId === 'a' });
    expect(plan.moves).toHaveLength(1);
    expect(plan.moves[0]).toMatchObject({ toGpuId: 'a' });
  });
});
