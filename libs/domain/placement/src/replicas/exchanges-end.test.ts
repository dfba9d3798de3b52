import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { EndpointStanding, Holding, PlacementDemand, PlacementNode } from './placement-input.js';
import { planReplicas } from './plan-replicas.js';
import { demand, GB, input, node, replica } from './testing-fleet-suite.js';

/** Far more plans than replicas change hands where every exchange makes somebody poorer richer. */
const PLANS_MAX = 200;

interface Wish {
  readonly demand: PlacementDemand;
  readonly standing: EndpointStanding;
  /** The plan from which on it wants anything, so that the fleet may be full of others by then. */
  readonly from: number;
}

interface Living extends Holding {
  readonly endpointId: string;
  readonly number: number;
  readonly isLeaving: boolean;
}

/** Plans, does what the plan says, and lets one of those that drain end at a time, until nothing changes: `pick` says which one. False where it never does. */
function comesToRest(nodes: readonly PlacementNode[], wishes: readonly Wish[], pick: (among: number, plan: number) => number): boolean {
  let living: readonly Living[] = [];
  let placed = 0;
  const standings = new Map(wishes.map((wish) => [wish.demand.endpointId, wish.standing]));
  for (let plans = 0; plans < PLANS_MAX; plans += 1) {
    const demands = wishes.filter(({ from }) => from <= plans).map((wish) => ({ ...wish.demand, replicas: living.filter((one) => one.endpointId === wish.demand.endpointId && !one.isLeaving).map((one) => replica(one.replicaId, { nodeIds: one.members.map(({ nodeId }) => nodeId), placedAtMs: one.number })) }));
    const plan = planReplicas({ ...input(nodes, demands, living), standings });
    const leaving = living.filter((one) => one.isLeaving);
    if (demands.length === wishes.length && plan.placements.length === 0 && plan.drains.length === 0 && leaving.length === 0) return true;
    const drained = new Set(plan.drains.map(({ replicaId }) => replicaId));
    const ended = leaving.length === 0 ? undefined : leaving[pick(leaving.length, plans)]?.replicaId;
    const fresh = plan.placements.map((placement): Living => {
      placed += 1;
      return { ...placement, replicaId: `r${placed}`, number: placed, isLeaving: false };
    });
    living = [...living.filter(({ replicaId }) => replicaId !== ended).map((one) => (drained.has(one.replicaId) ? { ...one, isLeaving: true } : one)), ...fresh];
  }
  return false;
}

const standing = (tenantId: string, weight = 4, floor = 0): EndpointStanding => ({ tenantId, weight, priority: 0, floor, floorPriority: floor });
const fleetOf = (sizes: readonly number[]): readonly PlacementNode[] => sizes.map((gpus, index) => node(`n${index}`, Array.from({ length: gpus }, () => 10 * GB)));

describe('replicas that change hands', () => {
  test('room for a gang is kept until all of it is free, though another tenant lacks replicas that would fit in a part of it', () => {
    // It comes first in its tenant, and no node is open to it: what it asks for in vain costs the tenant nothing.
    const absurd = demand('absurd', { acceleratorCount: 4, memoryBytes: 4 * GB, wanted: 4 });
    const wide = demand('wide', { acceleratorCount: 4, memoryBytes: 4 * GB, wanted: 3, rules: { allowsSpot: true } });
    const gang = demand('gang', { acceleratorCount: 2, memoryBytes: 4 * GB, wanted: 1, rules: { nodes: 2, allowsSpot: true } });
    const nodes = fleetOf([4, 4, 4]).map((one): PlacementNode => ({ ...one, market: 'spot' }));
    const full = [0, 1, 2].map((index) => ({ replicaId: `w${index}`, members: [{ nodeId: `n${index}`, acceleratorIds: [0, 1, 2, 3].map((at) => `n${index}_acc${at}`) }], reservedBytes: 4 * GB, computeMilli: 0, cpuMilli: 0, hostMemoryBytes: 0, mig: null }));
    const standings = new Map([['absurd', standing('poor')], ['gang', standing('poor')], ['wide', standing('all')]]);
    const having = (ids: readonly string[]): PlacementDemand => ({ ...wide, replicas: ids.map((id) => replica(id, { nodeIds: [id.replace('w', 'n')] })) });
    const first = planReplicas({ ...input(nodes, [absurd, having(['w0', 'w1', 'w2']), gang], full), standings });
    expect(first.drains.map(({ endpointId }) => endpointId)).toEqual(['wide', 'wide']);
    const [early, late] = first.drains.map(({ replicaId }) => replicaId);
    const left = full.filter(({ replicaId }) => replicaId !== early).map((one) => ({ ...one, isLeaving: one.replicaId === late }));
    const stays = left.filter(({ isLeaving }) => !isLeaving).map(({ replicaId }) => replicaId);
    const second = planReplicas({ ...input(nodes, [absurd, having(stays), gang], left), standings });
    expect([second.placements, second.drains]).toEqual([[], []]);
    const third = planReplicas({ ...input(nodes, [absurd, having(stays), gang], left.filter(({ isLeaving }) => !isLeaving)), standings });
    expect(third.placements.map(({ endpointId }) => endpointId)).toEqual(['gang']);
  });

  test('come to rest, whoever wants what and whatever drains first', () => {
    const wishes = fc.array(fc.record({
      gpus: fc.integer({ min: 1, max: 4 }), size: fc.integer({ min: 1, max: 10 }), nodes: fc.constantFrom(1, 1, 1, 2), milli: fc.constantFrom(null, null, 300, 1_000), wanted: fc.integer({ min: 0, max: 4 }), isNowhere: fc.constantFrom(false, false, false, true),
      tenant: fc.constantFrom('', 'a', 'b', 'c'), weight: fc.constantFrom(1, 4, 8), floor: fc.constantFrom(0, 0, 0, 1, 2), from: fc.integer({ min: 0, max: 12 }),
    }), { minLength: 2, maxLength: 6 });
    fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }), wishes, fc.array(fc.nat(), { minLength: 1, maxLength: 12 }), (sizes, all, picks) => {
      const weights = new Map(all.map(({ tenant, weight }) => [tenant, weight]));
      const made = all.map(({ gpus, size, nodes, milli, wanted, isNowhere, tenant, floor, from }, index): Wish => ({
        from,
        demand: demand(`e${index}`, { acceleratorType: isNowhere ? 'a100' : null, acceleratorCount: gpus, memoryBytes: size * gpus * nodes * GB, wanted: Math.max(wanted, floor), rules: { nodes, computeMilli: milli } }),
        standing: { ...standing(tenant, weights.get(tenant), floor), floorPriority: index },
      }));
      expect(comesToRest(fleetOf(sizes), made, (among, plan) => (picks[plan % picks.length] ?? 0) % among)).toBe(true);
    }), { numRuns: 300 });
  });
});
