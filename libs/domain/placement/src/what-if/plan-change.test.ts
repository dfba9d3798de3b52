import { describe, expect, test } from '@jest/globals';
import { reservationMadeV1, type ReservationMadeV1 } from '@penstock/contract-events';
import fc from 'fast-check';
import type { FleetDemand, FleetNode, FleetPart } from '../fleet/fleet-types.js';
import { planDeployment, planFleetChange, type FleetChange, type FleetPicture } from './plan-change.js';
import type { StandingReplica } from './standing-fleet.js';

const node = (nodeId: string, part: Partial<FleetNode> = {}): FleetNode => ({
  nodeId, gpuType: 'H100-80GB-SXM', gpus: 2, islands: [[0, 1]], vramMib: 80_000, cpuMilli: 96_000, hostMemoryMib: 500_000, failureDomain: `rack-${nodeId}`, sharing: 'shares', market: 'on_demand', pricePerGpu: 3.5, taints: [], isCordoned: false, ...part,
});
const share = (computeMilli: number): FleetPart => ({ accelerators: 1, nodes: 1, computeMilli, vramMib: computeMilli * 80, migProfile: null, cpuMilli: 0, hostMemoryMib: 0 });
const free = { allowsSpot: false, pinnedNodeIds: null, tolerations: [] };
const replica = (replicaId: string, nodeId: string, gpuIndex: number, computeMilli: number, endpointId = replicaId): StandingReplica => ({ replicaId, endpointId, part: share(computeMilli), precision: 'fp8', members: [{ nodeId, gpus: [gpuIndex] }], start: null, demand: free });
const demand = (computeMilli: number, accelerators = 1): FleetDemand => ({ ...free, endpointId: 'new', hint: 'nothing holds it', options: [{ gpuType: 'H100-80GB-SXM', sharing: 'shares', precision: 'fp8', parts: [{ ...share(computeMilli), accelerators }] }] });
const picture = (replicas: readonly StandingReplica[], nodes = [node('a'), node('b')], commitments: readonly ReservationMadeV1[] = []): FleetPicture => ({ nodes, replicas, commitments, nowMs: Date.parse('2026-12-02T00:00:00.000Z') });
const change = (part: Partial<FleetChange> = {}): FleetChange => ({ add: [], removeNodeIds: new Set(), loseDomains: new Set(), ...part });

describe('a deployment, tried out', () => {
  test('says where it would stand and what the fleet then costs', () => {
    const plan = planDeployment(picture([replica('r1', 'a', 0, 500)]), demand(500));
    expect(plan).toMatchObject({ fits: true, moves: [], placed: [{ gpuType: 'H100-80GB-SXM', members: [{ nodeId: 'a', gpus: [0] }], computeMilli: 500 }], before: { dollarsPerHour: 3.5, gpusInUse: 1, gpus: 4 }, after: { dollarsPerHour: 3.5 } });
    expect(plan.after.lowerBoundDollarsPerHour).toBeLessThanOrEqual(plan.after.dollarsPerHour + 1e-6);
  });

  test('moves others closer together where that makes room, and refuses with the reason where it does not', () => {
    const spread = [replica('r1', 'a', 0, 500), replica('r2', 'a', 1, 500), replica('r3', 'b', 0, 500), replica('r4', 'b', 1, 500)];
    const plan = planDeployment(picture(spread), demand(1_000, 2));
    expect(plan.fits).toBe(true);
    expect(plan.moves.length).toBeGreaterThan(0);
    const full = planDeployment(picture(spread.map((one) => ({ ...one, part: share(900) }))), demand(1_000, 2));
    expect(full).toMatchObject({ fits: false, moves: [], refused: [{ endpointId: 'new', replicaId: null, reason: expect.stringContaining('2 untouched GPUs in one NVLink island') as unknown }] });
    expect(planDeployment(picture([], []), demand(100))).toMatchObject({ fits: false, refused: [{ reason: 'no node is left: add one' }] });
    expect(planDeployment(picture([]), { ...demand(100), options: [] }).refused[0]?.reason).toBe('nothing holds it');
  });
});

describe('a change of the fleet, tried out', () => {
  test('what stands on nodes that stay is left alone; the rest moves or is refused', () => {
    const standing = [replica('r1', 'a', 0, 500), replica('r2', 'b', 0, 500), replica('r3', 'b', 1, 1_000)];
    const plan = planFleetChange(picture(standing), change({ removeNodeIds: new Set(['a']) }));
    expect(plan).toMatchObject({ fits: true, moves: [{ replicaId: 'r1', fromNodeIds: ['a'], members: [{ nodeId: 'b', gpus: [0] }] }], after: { gpus: 2, gpusInUse: 2 } });
    const lost = planFleetChange(picture(standing), change({ loseDomains: new Set(['rack-b']) }));
    expect(lost.moves.map(({ replicaId }) => replicaId).sort()).toEqual(['r2', 'r3']);
    const all = planFleetChange(picture(standing), change({ removeNodeIds: new Set(['a', 'b']) }));
    expect(all).toMatchObject({ fits: false, moves: [], refused: [{ replicaId: 'r1' }, { replicaId: 'r2' }, { replicaId: 'r3' }] });
    expect(planFleetChange(picture(standing), change({ add: [node('c')], removeNodeIds: new Set(['b']) }))).toMatchObject({ fits: true, refused: [], after: { gpus: 4 } });
  });

  test('replicas of one endpoint do not all go where one failure takes them all', () => {
    const standing = [replica('r1', 'a', 0, 300, 'ep'), replica('r2', 'b', 0, 300, 'ep')];
    const plan = planFleetChange(picture(standing, [node('a'), node('b'), node('c')]), change({ removeNodeIds: new Set(['a']) }));
    expect(plan.moves).toMatchObject([{ replicaId: 'r1', members: [{ nodeId: 'c' }] }]);
  });

  test('promises that would lose their room are named', () => {
    const made = reservationMadeV1.schema.parse(reservationMadeV1.example);
    const promised = { ...made, capacity: { ...made.capacity, parts: [{ ...share(1_000), count: 3 }] } };
    expect(planFleetChange(picture([], [node('a'), node('b')], [promised]), change({ removeNodeIds: new Set(['b']) }))).toMatchObject({ fits: false, refused: [], brokenReservations: ['res_01'] });
    expect(planFleetChange(picture([], [node('a'), node('b')], [promised]), change()).brokenReservations).toEqual([]);
  });

  test('nothing is given away twice, and what cannot be told is not moved', () => {
    const sizes = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 1 }), fc.integer({ min: 1, max: 10 })), { maxLength: 20 });
    fc.assert(fc.property(sizes, fc.subarray(['a', 'b', 'c']), (all, gone) => {
      const room = new Map<string, number>();
      const standing = all.flatMap(([nodeId, gpuIndex, size], index) => {
        const key = `${nodeId}${gpuIndex}`;
        if ((room.get(key) ?? 10) < size) return [];
        room.set(key, (room.get(key) ?? 10) - size);
        return [replica(`r${String(index).padStart(2, '0')}`, nodeId, gpuIndex, size * 100)];
      });
      const plan = planFleetChange(picture(standing, [node('a'), node('b'), node('c')]), change({ removeNodeIds: new Set(gone) }));
      const used = new Map<string, number>();
      const moved = new Map(plan.moves.map((move) => [move.replicaId, move.members]));
      for (const one of standing) {
        if (plan.refused.some(({ replicaId }) => replicaId === one.replicaId)) continue;
        for (const { nodeId, gpus } of moved.get(one.replicaId) ?? one.members) for (const gpuIndex of gpus) used.set(`${nodeId}${gpuIndex}`, (used.get(`${nodeId}${gpuIndex}`) ?? 0) + one.part.computeMilli);
      }
      expect([...used.values()].every((milli) => milli <= 1_000)).toBe(true);
      expect([...used.keys()].some((key) => gone.includes(key[0] ?? ''))).toBe(false);
      expect(plan.moves.length + plan.refused.length).toBe(standing.filter(({ members }) => gone.includes(members[0]?.nodeId ?? '')).length);
    }), { numRuns: 60 });
  });
});
