import { placementRefusedV2, replicaPlacedV2 } from '@penstock/contract-events';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Holding, PlacementDemand, PlacementNode } from './placement-input.js';
import { planReplicas } from './plan-replicas.js';
import { accelerator, demand, GB, input, migNode, node } from './testing-fleet-suite.js';

/** What an A100 with 80 GB allows, from NVIDIA's MIG user guide: begins, length in memory slices, compute slices. */
const INSTANCES: Readonly<Record<string, { readonly begins: readonly number[]; readonly length: number; readonly compute: number }>> = {
  '1g.10gb': { begins: [0, 1, 2, 3, 4, 5, 6], length: 1, compute: 1 },
  '1g.20gb': { begins: [0, 2, 4, 6], length: 2, compute: 1 },
  '2g.20gb': { begins: [0, 2, 4], length: 2, compute: 2 },
  '3g.40gb': { begins: [0, 4], length: 4, compute: 3 },
  '4g.40gb': { begins: [0], length: 4, compute: 4 },
  '7g.80gb': { begins: [0], length: 8, compute: 7 },
};
const COMPUTE_SLICES = 7;

/** Adds up what is held, from nothing but nodes and placements, and finds what is given away twice. */
function problemsOf(nodes: readonly PlacementNode[], held: readonly Omit<Holding, 'replicaId'>[]): readonly string[] {
  const problems: string[] = [];
  for (const host of nodes) {
    for (const { acceleratorId, usableBytes } of host.accelerators) {
      const on = held.filter((one) => one.members.some((member) => member.nodeId === host.nodeId && member.acceleratorIds.includes(acceleratorId)));
      const shared = on.filter((one) => one.mig === null);
      const count = (one: Omit<Holding, 'replicaId'>): number => one.members.reduce((sum, member) => sum + member.acceleratorIds.length, 0);
      if (shared.reduce((sum, one) => sum + one.reservedBytes / count(one), 0) > usableBytes) problems.push(`memory of ${acceleratorId}`);
      if (shared.reduce((sum, one) => sum + one.computeMilli, 0) > 1_000) problems.push(`compute of ${acceleratorId}`);
      const slices = new Set<number>();
      let compute = 0;
      for (const { mig } of on) {
        const instance = mig === null ? undefined : INSTANCES[mig.profile];
        if (mig === null || instance === undefined) continue;
        if (!instance.begins.includes(mig.start)) problems.push(`${mig.profile} at ${mig.start}`);
        compute += instance.compute;
        for (let slice = mig.start; slice < mig.start + instance.length; slice += 1) {
          if (slices.has(slice)) problems.push(`slice ${slice} of ${acceleratorId}`);
          slices.add(slice);
        }
      }
      if (compute > COMPUTE_SLICES) problems.push(`compute slices of ${acceleratorId}`);
    }
    const here = held.filter((one) => one.members.some((member) => member.nodeId === host.nodeId));
    if (here.reduce((sum, one) => sum + one.cpuMilli, 0) > host.cpuMilli) problems.push(`CPU of ${host.nodeId}`);
  }
  return problems;
}

const anyNode = fc.record({
  memories: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 }), kind: fc.constantFrom('h100', 'cpu', 'mig', 'alone'), hasEngine: fc.boolean(), rack: fc.constantFrom('r1', 'r2'), cpuMilli: fc.constantFrom(2_000, 64_000),
});
const anyFleet = fc.array(anyNode, { maxLength: 6 }).map((shapes) => shapes.map(({ memories, kind, hasEngine, rack, cpuMilli }, index) => {
  const change = { failureDomain: rack, cpuMilli, ...(hasEngine ? {} : { engines: [] }) };
  if (kind === 'mig') return migNode(`n${index}`, [], change, 2);
  if (kind === 'alone') return node(`n${index}`, [], { ...change, accelerators: memories.map((gb, at) => accelerator(`n${index}_acc${at}`, gb * GB, { isExclusive: true })) });
  return node(`n${index}`, memories.map((gb) => gb * GB), change, kind);
}));
const anyDemands = fc.array(fc.record({
  memoryBytes: fc.integer({ min: 0, max: 60 * GB }),
  acceleratorCount: fc.integer({ min: 1, max: 3 }),
  acceleratorType: fc.constantFrom(null, 'h100', 'cpu', 'a100'),
  wanted: fc.nat(4),
  warmNodeIds: fc.subarray(['n0', 'n1', 'n2']).map((ids) => new Set(ids)),
  computeMilli: fc.constantFrom(null, null, 250, 600),
  migProfile: fc.constantFrom(null, null, null, '3g.40gb', '1g.10gb'),
  nodes: fc.constantFrom(1, 1, 1, 2),
  cpuMilli: fc.constantFrom(null, 1_500),
}), { maxLength: 6 }).map((wishes) => wishes.map(({ computeMilli, migProfile, nodes, cpuMilli, ...wish }, index) => demand(`ep${index}`, { ...wish, rules: { computeMilli, migProfile, nodes, cpuMilli } })));

describe('on any fleet', () => {
  test('nothing is given away twice, gangs are whole, whoever is short is told, and the bodies keep to their contracts', () => {
    fc.assert(fc.property(anyFleet, anyDemands, (nodes, demands) => {
      const plan = planReplicas(input(nodes, demands));
      expect(problemsOf(nodes, plan.placements)).toEqual([]);
      for (const placement of plan.placements) {
        const wish = demands.find((one) => one.endpointId === placement.endpointId) as PlacementDemand;
        expect(placement.members.map((member) => new Set(member.acceleratorIds).size)).toEqual(Array.from({ length: wish.rules.nodes }, () => wish.acceleratorCount));
        expect(new Set(placement.members.map((member) => member.nodeId)).size).toBe(wish.rules.nodes);
        replicaPlacedV2.schema.parse({ replicaId: 'rep_1', ...placement });
      }
      for (const wish of demands) {
        const placed = plan.placements.filter((placement) => placement.endpointId === wish.endpointId).length;
        const refusal = plan.refusals.find((candidate) => candidate.endpointId === wish.endpointId);
        expect(refusal === undefined).toBe(placed === wish.wanted);
        if (refusal !== undefined) placementRefusedV2.schema.parse(refusal);
      }
    }), { numRuns: 300 });
  });

  test('a plan made of what an earlier plan placed adds nothing to it', () => {
    fc.assert(fc.property(anyFleet, anyDemands, (nodes, demands) => {
      const first = planReplicas(input(nodes, demands));
      const again = demands.map((wish) => ({ ...wish, pending: first.placements.flatMap((placement, index) => (placement.endpointId === wish.endpointId ? [{ replicaId: `r${index}`, nodeIds: placement.members.map((member) => member.nodeId), replaces: null }] : [])) }));
      const second = planReplicas(input(nodes, again, first.placements.map((placement, index) => ({ ...placement, replicaId: `r${index}` }))));
      expect(second.placements).toEqual([]);
      expect(second.refusals.map(({ endpointId }) => endpointId)).toEqual(first.refusals.map(({ endpointId }) => endpointId));
    }));
  });

  test('the same input in another order gives the same plan', () => {
    fc.assert(fc.property(anyFleet, anyDemands, (nodes, demands) => {
      const plan = planReplicas(input(nodes, demands));
      expect(planReplicas(input([...nodes].reverse(), [...demands].reverse())).placements).toEqual(plan.placements);
    }));
  });
});
