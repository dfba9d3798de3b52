import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MIG_GEOMETRIES } from '../mig/mig-geometries.js';
import { layoutProblems, type MigGeometry } from '../mig/mig-geometry.js';
import { FleetPlanner } from './fleet-planner.js';
import type { FleetAssignment, FleetDemand, FleetNode, FleetOption, FleetPart } from './fleet-types.js';

const VRAM = 80_000;
const node = (nodeId: string, part: Partial<FleetNode> = {}): FleetNode => ({
  nodeId, gpuType: 'H100-80GB-SXM', gpus: 8, islands: [[0, 1, 2, 3, 4, 5, 6, 7]], vramMib: VRAM, cpuMilli: 192_000, hostMemoryMib: 1_000_000,
  failureDomain: nodeId, sharing: 'shares', market: 'on_demand', pricePerGpu: 3.5, taints: [], isCordoned: false, ...part,
});
const a100 = (nodeId: string): FleetNode => node(nodeId, { gpuType: 'A100-80GB-SXM', sharing: 'mig', pricePerGpu: 2 });
const share = (computeMilli: number, vramMib: number): FleetPart => ({ accelerators: 1, nodes: 1, computeMilli, vramMib, migProfile: null, cpuMilli: 2_000, hostMemoryMib: 4_096 });
const group = (accelerators: number, nodes = 1): FleetPart => ({ ...share(1_000, VRAM), accelerators, nodes });
const slice = (migProfile: string): FleetPart => ({ ...share(1_000, 0), migProfile });
const onH100 = (...parts: FleetPart[]): FleetOption => ({ gpuType: 'H100-80GB-SXM', sharing: 'shares', precision: 'fp8', parts });
const onA100 = (...parts: FleetPart[]): FleetOption => ({ gpuType: 'A100-80GB-SXM', sharing: 'mig', precision: 'bf16', parts });
const demand = (endpointId: string, options: FleetOption[], part: Partial<FleetDemand> = {}): FleetDemand => ({ endpointId, options, hint: '', allowsSpot: false, pinnedNodeIds: null, tolerations: [], ...part });
const placedOn = (planner: FleetPlanner, endpointId: string): readonly string[] => planner.assignments.get(endpointId)?.seats.flatMap(({ seat }) => seat.nodes.map((index) => planner.state.nodes[index]?.nodeId ?? '')) ?? [];

const options = fc.oneof(
  fc.record({ compute: fc.integer({ min: 1, max: 40 }), vram: fc.integer({ min: 1, max: 80 }), count: fc.integer({ min: 1, max: 3 }) }).map(({ compute, vram, count }) => onH100(...Array.from({ length: count }, () => share(compute * 25, vram * 1_000)))),
  fc.constantFrom(1, 2, 4, 8).map((size) => onH100(group(size))),
  fc.constantFrom('1g.10gb', '1g.20gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb').map((profile) => onA100(slice(profile))),
);
const demands = fc.array(fc.array(options, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 40 }).map((all) => all.map((one, index) => demand(`e${String(index).padStart(2, '0')}`, one)));

/** Everything that is given away twice, from the seats alone. */
function overcommitted(planner: FleetPlanner): readonly string[] {
  const problems: string[] = [];
  const compute = new Map<number, number>();
  const vram = new Map<number, number>();
  const layouts = new Map<number, { profile: string; start: number }[]>();
  for (const { demand: { endpointId }, option, seats } of planner.assignments.values()) {
    if (seats.length !== option.parts.length) problems.push(`${endpointId} is not whole`);
    for (const { part, seat } of seats) {
      for (const gpu of seat.gpus) {
        if (part.migProfile !== null) layouts.set(gpu, [...(layouts.get(gpu) ?? []), { profile: part.migProfile, start: seat.start ?? -1 }]);
        else {
          compute.set(gpu, (compute.get(gpu) ?? 0) + part.computeMilli);
          vram.set(gpu, (vram.get(gpu) ?? 0) + part.vramMib);
        }
      }
    }
  }
  for (const [gpu, used] of compute) if (used > 1_000 || (vram.get(gpu) ?? 0) > VRAM || layouts.has(gpu)) problems.push(`GPU ${gpu} is overcommitted`);
  const geometry = MIG_GEOMETRIES.find((one) => one.gpuType === 'A100-80GB') as MigGeometry;
  for (const layout of layouts.values()) problems.push(...layoutProblems(geometry, layout));
  return problems;
}

describe('planning a fleet', () => {
  test('nothing is given away twice, whatever comes, goes, fails and moves', () => {
    fc.assert(
      fc.property(demands, demands, fc.array(fc.nat(39), { maxLength: 20 }), (first, later, leaves) => {
        const planner = new FleetPlanner([node('a'), node('b'), a100('c'), a100('d')]);
        const plan = planner.planAll(first);
        expect(overcommitted(planner)).toEqual([]);
        expect(planner.assignments.size + plan.refusals.length).toBe(first.length);
        expect(planner.lowerBound()).toBeLessThanOrEqual(planner.state.cost() + 1e-6);
        const before = planner.state.cost();
        planner.consolidate(100);
        expect(planner.state.cost()).toBeLessThanOrEqual(before);
        expect(overcommitted(planner)).toEqual([]);
        for (const index of leaves) planner.depart(`e${String(index).padStart(2, '0')}`);
        for (const one of later) planner.arrive({ ...one, endpointId: `late-${one.endpointId}` });
        planner.loseDomain('a');
        expect([...planner.assignments.values()].every(({ seats }) => seats.every(({ seat }) => !seat.nodes.includes(0)))).toBe(true);
        expect(overcommitted(planner)).toEqual([]);
        for (const endpointId of [...planner.assignments.keys()]) planner.depart(endpointId);
        expect([planner.state.cost(), planner.state.gpusInUse()]).toEqual([0, 0]);
      }),
      { numRuns: 60 },
    );
  });

  test('replicas of one endpoint do not all stand in one failure domain', () => {
    const planner = new FleetPlanner([node('a'), node('b')]);
    planner.planAll([demand('e', [onH100(share(500, 1_000), share(500, 1_000))])]);
    expect(new Set(placedOn(planner, 'e')).size).toBe(2);
  });

  test('a gang over two nodes is placed whole or refused', () => {
    const gang = demand('gang', [onH100(group(16, 2))]);
    const planner = new FleetPlanner([node('a'), node('b'), node('c')]);
    expect(planner.arrive(gang)).toMatchObject({ option: { parts: [{ accelerators: 16 }] } });
    expect(new Set(placedOn(planner, 'gang')).size).toBe(2);
    const second = planner.arrive(demand('second', [onH100(group(16, 2))]));
    expect(second).toEqual({ endpointId: 'second', reason: '3 nodes have H100-80GB-SXM: 0 are closed, 0 are excluded by pins or taints, 3 do not have 8 untouched GPUs in one NVLink island' });
    expect(planner.state.gpusInUse()).toBe(16);
  });

  test('a group stays inside one NVLink island', () => {
    const pairs = node('pairs', { gpus: 4, islands: [[0, 1], [2, 3]] });
    const planner = new FleetPlanner([pairs]);
    planner.arrive(demand('one', [onH100(share(100, 100))]));
    const assignment = planner.arrive(demand('pair', [onH100(group(2))])) as FleetAssignment;
    expect(assignment.seats[0]?.seat.gpus).toEqual([2, 3]);
    expect(planner.arrive(demand('other', [onH100(group(2))]))).toHaveProperty('reason');
  });

  test('pins, taints, cordons and spot are kept, and a refusal says which of them stood in the way', () => {
    const planner = new FleetPlanner([node('a', { taints: ['gold'] }), node('b', { isCordoned: true }), node('c', { market: 'spot', pricePerGpu: 1.5 })]);
    const one = [onH100(share(500, 1_000))];
    expect(planner.arrive(demand('plain', one))).toEqual({ endpointId: 'plain', reason: '2 nodes have H100-80GB-SXM: 1 are closed, 1 are excluded by pins or taints, 0 do not have one GPU with room' });
    planner.arrive(demand('tolerant', one, { tolerations: ['gold'] }));
    planner.arrive(demand('cheap', one, { allowsSpot: true }));
    expect([placedOn(planner, 'tolerant'), placedOn(planner, 'cheap')]).toEqual([['a'], ['c']]);
    expect(planner.arrive(demand('pinned', one, { pinnedNodeIds: ['b'] }))).toHaveProperty('reason');
    expect(planner.arrive(demand('other', [{ ...onH100(share(1, 1)), gpuType: 'L4-24GB' }]))).toEqual({ endpointId: 'other', reason: 'no node has L4-24GB on demand: add one, or allow other hardware' });
  });

  test('small work shares GPUs and leaves whole nodes to those that need them', () => {
    const planner = new FleetPlanner([node('a'), node('b')]);
    const { cost, lowerBound, refusals } = planner.planAll([...Array.from({ length: 32 }, (_, index) => demand(`small-${String(index).padStart(2, '0')}`, [onH100(share(250, 20_000))])), demand('big', [onH100(group(8))])]);
    expect(refusals).toEqual([]);
    expect(planner.state.gpusInUse()).toBe(16);
    expect(cost).toBeCloseTo(lowerBound, 1);
  });
});
