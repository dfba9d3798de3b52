import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { NO_STANDING, type EndpointStanding, type Holding, type PlacementDemand, type PlacementInput, type PlacementNode } from './placement-input.js';
import { planReplicas } from './plan-replicas.js';
import { demand, GB, holding, input, node, replica } from './testing-fleet-suite.js';

const promise = (floor: number, floorPriority = 500): EndpointStanding => ({ ...NO_STANDING, floor, floorPriority });

/** An endpoint whose replicas stand on accelerators of a node, each of so many bytes. */
function standing(endpointId: string, at: readonly (readonly [nodeId: string, index: number])[], bytes: number, part: Partial<PlacementDemand> = {}): { readonly demand: PlacementDemand; readonly holdings: readonly Holding[] } {
  const replicas = at.map(([nodeId], index) => replica(`${endpointId}_${index}`, { nodeIds: [nodeId], placedAtMs: index }));
  return {
    demand: demand(endpointId, { memoryBytes: bytes, wanted: at.length, replicas, ...part }),
    holdings: at.map(([nodeId, index], number) => holding(nodeId, [`${nodeId}_acc${index}`], bytes, { replicaId: `${endpointId}_${number}` })),
  };
}

const plan = (nodes: readonly PlacementNode[], demands: readonly PlacementDemand[], holdings: readonly Holding[], standings: Readonly<Record<string, EndpointStanding>>): ReturnType<typeof planReplicas> => planReplicas({ ...input(nodes, demands, holdings), standings: new Map(Object.entries(standings)) } satisfies PlacementInput);

describe('room for what was promised', () => {
  test('is made by draining as little as possible of what was not, and nobody else gets it meanwhile', () => {
    const free = standing('free', [['n1', 0], ['n2', 0]], 60 * GB);
    const made = plan([node('n1', [80 * GB]), node('n2', [80 * GB])], [free.demand, demand('sla', { memoryBytes: 60 * GB }), demand('late', { memoryBytes: 70 * GB })], free.holdings, { sla: promise(1) });
    expect(made.placements).toEqual([]);
    expect(made.drains).toEqual([{ endpointId: 'free', replicaId: 'free_0', reason: 'it gives way to a promised replica of sla' }]);
    expect(made.refusals.map(({ endpointId, code, hint }) => [endpointId, code, hint])).toEqual([['late', 'no_memory', null], ['sla', 'no_memory', 'room is being made for it: other replicas drain']]);
  });

  test('what drains already is waited for, and a small replica does not slip into its room', () => {
    const leaving = { ...holding('n1', ['n1_acc0'], 40 * GB), replicaId: 'old', isLeaving: true };
    const made = plan([node('n1', [80 * GB])], [demand('sla', { memoryBytes: 60 * GB }), demand('small', { memoryBytes: 30 * GB })], [leaving], { sla: promise(1) });
    expect([made.placements, made.drains]).toEqual([[], []]);
    expect(made.refusals.find(({ endpointId }) => endpointId === 'small')).toMatchObject({ code: 'reserved', reason: 'the room that there is, is kept for replicas that were promised' });
    const tiny = plan([node('n1', [80 * GB, 30 * GB])], [demand('sla', { memoryBytes: 60 * GB }), demand('small', { memoryBytes: 30 * GB })], [leaving], { sla: promise(1) });
    expect(tiny.placements.map(({ endpointId }) => endpointId)).toEqual(['small']);
  });

  test('promised replicas never give way, neither to promises nor to anybody', () => {
    const kept = standing('kept', [['n1', 0]], 60 * GB);
    const made = plan([node('n1', [80 * GB])], [kept.demand, demand('sla', { memoryBytes: 60 * GB })], kept.holdings, { kept: promise(1, 1), sla: promise(1, 900) });
    expect(made.drains).toEqual([]);
  });

  test('the lowest tier gives way first, and of an endpoint only what is above its floor', () => {
    const low = standing('low', [['n1', 0]], 60 * GB);
    const high = standing('high', [['n2', 0], ['n3', 0]], 60 * GB);
    const nodes = [node('n1', [80 * GB]), node('n2', [80 * GB]), node('n3', [80 * GB])];
    const made = plan(nodes, [low.demand, high.demand, demand('sla', { memoryBytes: 60 * GB, wanted: 2 })], [...low.holdings, ...high.holdings], { low: { ...NO_STANDING, priority: 0 }, high: { ...promise(1), priority: 300 }, sla: promise(2) });
    expect(made.drains.map(({ replicaId }) => replicaId)).toEqual(['low_0', 'high_1']);
  });

  test('a node that is closed or lacks the engine is not emptied in vain', () => {
    const free = standing('free', [['n1', 0]], 60 * GB);
    for (const change of [{ cordonReason: 'repair' }, { engines: [] }, { taints: ['gold'] }]) {
      expect(plan([node('n1', [80 * GB], change)], [free.demand, demand('sla', { memoryBytes: 60 * GB })], free.holdings, { sla: promise(1) }).drains).toEqual([]);
    }
  });
});

describe('room for a fair share', () => {
  const rich = { ...NO_STANDING, tenantId: 'rich', weight: 1 };
  const poor = { ...NO_STANDING, tenantId: 'poor', weight: 4 };

  test('comes from the tenant with the larger share for its weight, until shares are even', () => {
    const held = standing('rich', [['n1', 0], ['n1', 1], ['n2', 0], ['n2', 1]], 60 * GB);
    const nodes = [node('n1', [80 * GB, 80 * GB]), node('n2', [80 * GB, 80 * GB])];
    const made = plan(nodes, [held.demand, demand('poor', { memoryBytes: 60 * GB, wanted: 1 })], held.holdings, { rich, poor });
    expect(made.drains).toMatchObject([{ endpointId: 'rich', reason: 'it gives way to poor, whose tenant is below its fair share' }]);
    const back = standing('poor', [['n1', 0], ['n1', 1], ['n2', 0]], 60 * GB);
    const left = standing('rich', [['n2', 1]], 60 * GB, { wanted: 4 });
    expect(plan(nodes, [back.demand, left.demand], [...back.holdings, ...left.holdings], { rich, poor }).drains).toEqual([]);
  });

  test('nothing is given away twice and no floor is broken, whatever stands and is wanted', () => {
    const anything = fc.array(fc.record({ at: fc.array(fc.tuple(fc.constantFrom('n1', 'n2'), fc.integer({ min: 0, max: 1 })), { maxLength: 3 }), size: fc.integer({ min: 1, max: 6 }), extra: fc.integer({ min: 0, max: 3 }), floor: fc.integer({ min: 0, max: 2 }), tenant: fc.constantFrom('a', 'b'), weight: fc.constantFrom(1, 4) }), { minLength: 1, maxLength: 5 });
    fc.assert(fc.property(anything, (all) => {
      const used = new Map<string, number>();
      const nodes = [node('n1', [10 * GB, 10 * GB]), node('n2', [10 * GB, 10 * GB])];
      const stands = all.map(({ at, size, extra, floor }, index) => {
        const fitting = at.filter(([nodeId, acc]) => {
          const key = `${nodeId}${acc}`;
          if ((used.get(key) ?? 0) + size > 10) return false;
          used.set(key, (used.get(key) ?? 0) + size);
          return true;
        });
        return standing(`e${index}`, fitting, size * GB, { wanted: Math.max(floor, fitting.length + extra) });
      });
      const standings = Object.fromEntries(all.map(({ floor, tenant, weight }, index) => [`e${index}`, { tenantId: tenant, weight, priority: 0, floor, floorPriority: index }]));
      const made = plan(nodes, stands.map((one) => one.demand), stands.flatMap((one) => one.holdings), standings);
      for (const { members, reservedBytes } of made.placements) for (const member of members) for (const id of member.acceleratorIds) used.set(id.replace('_acc', ''), (used.get(id.replace('_acc', '')) ?? 0) + reservedBytes / GB);
      expect([...used.values()].every((gigabytes) => gigabytes <= 10)).toBe(true);
      for (const [index, one] of stands.entries()) {
        const drained = made.drains.filter(({ endpointId }) => endpointId === `e${index}`).length;
        expect(one.demand.replicas.length - drained).toBeGreaterThanOrEqual(Math.min(one.demand.replicas.length, all[index]?.floor ?? 0));
      }
      expect(new Set(made.drains.map(({ replicaId }) => replicaId)).size).toBe(made.drains.length);
      expect(plan(nodes, stands.map((one) => one.demand), stands.flatMap((one) => one.holdings), standings)).toEqual(made);
    }), { numRuns: 150 });
  });
});
