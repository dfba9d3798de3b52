import { ExhaustiveOptimiser } from '@penstock/testing-kit';
import { describe, expect, test } from '@jest/globals';
import type { Holding } from './placement-input.js';
import { planConsolidation } from './plan-moves.js';
import { planReplicas, ReplicaPlanner } from './plan-replicas.js';
import { demand, GB, holding, input, migNode, node, replica } from './testing-fleet-suite.js';

const exhaustive = new ExhaustiveOptimiser();
const limits = { timeMs: 1_000, gap: 0 };
const GPU = 81_101 * 1_048_576;

const serving = (endpointId: string, replicaId: string, nodeId: string, change: Parameters<typeof demand>[1] = {}) => demand(endpointId, { memoryBytes: 10 * GB, acceleratorType: 'h100', replicas: [replica(replicaId, { nodeIds: [nodeId] })], ...change });

describe('consolidation', () => {
  const nodes = [node('n1', [GPU]), node('n2', [GPU])];
  const held = [holding('n1', ['n1_acc0'], 10 * GB, { replicaId: 'r1' }), holding('n2', ['n2_acc0'], 30 * GB, { replicaId: 'r2' })];

  test('empties a GPU into the gap of another where that pays, and the successor comes first', async () => {
    const state = input(nodes, [serving('ep1', 'r1', 'n1'), serving('ep2', 'r2', 'n2', { memoryBytes: 30 * GB })], held);
    const planner = new ReplicaPlanner(state);
    const { moves, plan } = await planConsolidation(state, planner.fleet, exhaustive, limits);
    expect(plan.savedDollarsPerHour).toBe(3.5);
    expect(moves.map((move) => [move.replica.replicaId, ...planner.fleet.membersOf(move.seat).map((member) => member.nodeId)])).toEqual([['r1', 'n2']]);
    expect(planner.move(moves[0]!)).toMatchObject({ endpointId: 'ep1', replaces: 'r1', members: [{ nodeId: 'n2', acceleratorIds: ['n2_acc0'] }], reason: { summary: expect.stringContaining('empties a GPU') as unknown } });
  });

  test('leaves alone what may not move, what does not pay, and what has no price', async () => {
    const plan = async (change: { readonly demands?: ReturnType<typeof demand>[]; readonly hosts?: typeof nodes; readonly typicalStartMs?: number }) => {
      const demands = change.demands ?? [serving('ep1', 'r1', 'n1'), serving('ep2', 'r2', 'n2', { memoryBytes: 30 * GB })];
      const state = { ...input(change.hosts ?? nodes, demands, held), typicalStartMs: change.typicalStartMs ?? 60_000 };
      return (await planConsolidation(state, new ReplicaPlanner(state).fleet, exhaustive, limits)).moves.length;
    };
    expect(await plan({ typicalStartMs: 1_000_000_000 })).toBe(0);
    expect(await plan({ hosts: nodes.map((one) => ({ ...one, dollarsPerGpuHour: 0 })) })).toBe(0);
    expect(await plan({ demands: [serving('ep1', 'r1', 'n1', { rules: { pinnedNodeIds: ['n1'] } }), serving('ep2', 'r2', 'n2', { memoryBytes: 30 * GB, rules: { pinnedNodeIds: ['n2'] } })] })).toBe(0);
    expect(await plan({ demands: [serving('ep1', 'r1', 'n1', { replicas: [replica('r1', { isReady: false })] }), serving('ep2', 'r2', 'n2', { replicas: [replica('r2', { nodeIds: ['n2'], isReady: false })] })] })).toBe(0);
  });

  test('the plan says what it costs and what no plan costs less than', () => {
    const state = input(nodes, [serving('ep1', 'r1', 'n1', { rules: { computeMilli: 500 } }), serving('ep2', 'r2', 'n2', { rules: { computeMilli: 500 } })], held);
    const cost = new ReplicaPlanner(state).cost();
    expect(cost?.dollarsPerHour).toBe(7);
    expect(cost?.lowerBoundDollarsPerHour).toBeGreaterThan(2);
    expect(cost?.lowerBoundDollarsPerHour).toBeLessThanOrEqual(3.5);
    expect(new ReplicaPlanner(input([node('n1', [GB], {}, 'cpu')], [])).cost()).toBeNull();
  });
});

describe('room for a MIG instance', () => {
  const inSlice = (replicaId: string, nodeId: string, start: number): Holding => holding(nodeId, [`${nodeId}_acc0`], 9 * GB, { replicaId, mig: { profile: '1g.10gb', start } });
  const small = (endpointId: string, replicaId: string, nodeId: string) => demand(endpointId, { memoryBytes: 9 * GB, replicas: [replica(replicaId, { nodeIds: [nodeId] })] });
  const large = demand('large', { memoryBytes: 70 * GB, rules: { migProfile: '7g.80gb' } });
  const nodes = [migNode('n1'), migNode('n2')];
  const holdings = [inSlice('r1', 'n1', 0), inSlice('r2', 'n2', 6), inSlice('r3', 'n2', 5)];
  const demands = [small('ep1', 'r1', 'n1'), small('ep2', 'r2', 'n2'), small('ep3', 'r3', 'n2')];

  test('is made by moving what is in the way, where that is worth it', () => {
    const plan = planReplicas(input(nodes, [...demands, large], holdings));
    expect(plan.placements).toMatchObject([{ endpointId: 'ep1', replaces: 'r1', members: [{ nodeId: 'n2' }], mig: { profile: '1g.10gb' }, reason: { summary: expect.stringContaining('makes room for 7g.80gb') as unknown } }]);
    expect(plan.refusals).toMatchObject([{ endpointId: 'large', code: 'no_room' }]);
  });

  test('waits while something moves, and is refused where the drains cost more than it is worth', () => {
    const moving = [{ ...demands[0]!, replicas: [...demands[0]!.replicas, replica('r4', { nodeIds: ['n2'], isReady: false, replaces: 'r1' })] }, demands[1]!, demands[2]!];
    expect(planReplicas(input(nodes, [...moving, large], [...holdings, inSlice('r4', 'n2', 4)])).placements).toEqual([]);
    const dear = planReplicas({ ...input(nodes, [...demands, large], holdings), typicalStartMs: 1_000_000_000 });
    expect([dear.placements, dear.refusals[0]?.hint]).toEqual([[], expect.stringContaining('dollars of drains and brings')]);
    const full = planReplicas(input([migNode('n1')], [demands[0]!, large], [inSlice('r1', 'n1', 0)]));
    expect(full.refusals[0]?.hint).toBe('no GPU can make room for 7g.80gb, not even with its replicas moved: add a GPU');
  });
});
