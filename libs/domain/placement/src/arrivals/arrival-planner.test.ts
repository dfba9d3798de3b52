import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ArrivalDemand, ArrivalNode } from './arrival-demand.js';
import { ArrivalFleet, type ArrivalPlace } from './arrival-fleet.js';
import { ArrivalPlanner } from './arrival-planner.js';
import { BalancedGradient, BestFit, FragmentationGradient } from './arrival-policy.js';
import { TypicalWorkload } from './typical-workload.js';

const node = (nodeId: string, accelerators: number, acceleratorType = 'L4-24GB'): ArrivalNode => ({ nodeId, cpuMilli: 32_000, hostMemoryMib: 65_536, accelerators, acceleratorType, vramMib: 24_000 });
const demand = (part: Partial<ArrivalDemand>): ArrivalDemand => ({ cpuMilli: 2_000, hostMemoryMib: 2_048, accelerators: 1, computeMilli: 1_000, vramMib: 1_000, acceleratorTypes: [], ...part });

const demands = fc.array(
  fc.record({ accelerators: fc.constantFrom(0, 1, 1, 1, 2, 4), share: fc.constantFrom(1_000, 500, 250, 810), cpuMilli: fc.constantFrom(1_000, 4_000, 9_000), vramMib: fc.constantFrom(1_000, 9_000, 20_000) }).map(({ accelerators, share, cpuMilli, vramMib }) => demand({ accelerators, computeMilli: accelerators === 1 ? share : 1_000, cpuMilli, vramMib })),
  { minLength: 1, maxLength: 60 },
);

describe('placing arrivals', () => {
  test('nothing is given away twice, and what leaves is free again', () => {
    fc.assert(
      fc.property(demands, fc.array(fc.nat(), { maxLength: 60 }), (arrivals, leaves) => {
        const fleet = new ArrivalFleet([node('a', 4), node('b', 2), node('c', 8)]);
        const planner = new ArrivalPlanner(fleet, new BalancedGradient(new TypicalWorkload(arrivals)));
        const placed: { place: ArrivalPlace; demand: ArrivalDemand }[] = [];
        for (const [index, arrival] of arrivals.entries()) {
          const place = planner.place(arrival);
          if (place !== undefined) {
            expect(new Set(place.accelerators).size).toBe(arrival.accelerators);
            placed.push({ place, demand: arrival });
          }
          const [gone] = (leaves[index] ?? 1) % 3 === 0 ? placed.splice((leaves[index] ?? 0) % Math.max(1, placed.length), 1) : [];
          if (gone !== undefined) planner.release(gone.place, gone.demand);
          expect(Math.min(...fleet.cpuFree, ...fleet.memoryFree, ...fleet.computeFree, ...fleet.vramFree)).toBeGreaterThanOrEqual(0);
        }
        for (const { place, demand: one } of placed) planner.release(place, one);
        expect([...fleet.computeFree].every((free) => free === 1_000)).toBe(true);
        expect(fleet.nodes.every((_, index) => fleet.isUntouched(index))).toBe(true);
      }),
    );
  });

  test('remembered scores choose as fresh ones do', () => {
    fc.assert(
      fc.property(demands, (arrivals) => {
        const nodes = [node('a', 4), node('b', 2, 'T4'), node('c', 8)];
        const workload = new TypicalWorkload(arrivals);
        const fleet = new ArrivalFleet(nodes);
        const kept = new ArrivalPlanner(fleet, new FragmentationGradient(workload));
        const other = new ArrivalFleet(nodes);
        for (const arrival of arrivals) expect(kept.place(arrival)).toEqual(new ArrivalPlanner(other, new FragmentationGradient(workload)).place(arrival));
      }),
    );
  });

  test('a share goes beside another share rather than onto a whole accelerator', () => {
    const workload = new TypicalWorkload([demand({}), demand({}), demand({ computeMilli: 500 })]);
    const fleet = new ArrivalFleet([node('a', 2), node('b', 2)]);
    const planner = new ArrivalPlanner(fleet, new BalancedGradient(workload));
    const half = demand({ computeMilli: 500 });
    const first = planner.place(half);
    expect(planner.place(half)).toEqual(first);
  });

  test('types that a demand does not name, closed nodes and nodes left out by the caller are not taken', () => {
    const fleet = new ArrivalFleet([node('a', 1, 'T4'), node('b', 1), node('c', 1)]);
    const planner = new ArrivalPlanner(fleet, new BestFit());
    const l4 = demand({ acceleratorTypes: ['L4-24GB'], computeMilli: 100 });
    fleet.close(1);
    expect(planner.place(l4)?.node).toBe(2);
    expect(planner.place(l4, (index) => index !== 2)).toBeUndefined();
    fleet.reopen(1);
    expect(planner.place(l4, (index) => index !== 2)?.node).toBe(1);
  });
});
