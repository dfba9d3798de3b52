import { describe, expect, test } from '@jest/globals';
import type { PlacedReplica } from './placement-input.js';
import { planReplicas } from './plan-replicas.js';
import { accelerator, demand, GB, holding, input, migNode, node, replica } from './testing-fleet-suite.js';

type Plan = ReturnType<typeof planReplicas>;

const nodesOf = (plan: Plan) => plan.placements.map((placement) => placement.members.map((member) => member.nodeId).join('+'));
const acceleratorsOf = (plan: Plan) => plan.placements[0]?.members.flatMap((member) => member.acceleratorIds);

describe('where a replica goes', () => {
  test('to the accelerator that it fills best, with the reason and all candidates', () => {
    const plan = planReplicas(input([node('n1', [80 * GB]), node('n2', [24 * GB, 12 * GB]), node('n3', [80 * GB], { engines: [] })], [demand('ep1')]));
    expect(plan.placements[0]).toMatchObject({ endpointId: 'ep1', members: [{ nodeId: 'n2', acceleratorIds: ['n2_acc1'] }], reservedBytes: 10 * GB, mig: null, replaces: null });
    expect(plan.placements[0]?.reason.summary).toBe('best fit of 2 nodes: 2.0 GB stay free on n2_acc1 of host-n2');
    expect(plan.placements[0]?.reason.candidates).toMatchObject([{ nodeId: 'n2', score: 1.83, excluded: null }, { nodeId: 'n1', excluded: null }, { nodeId: 'n3', score: null, excluded: 'llama.cpp is not installed' }]);
  });

  test('spreads over nodes where that costs nothing, and over failure domains in any case', () => {
    const free = [node('n1', [80 * GB], {}, 'cpu'), node('n2', [80 * GB], {}, 'cpu'), node('n3', [80 * GB], {}, 'cpu')];
    expect(nodesOf(planReplicas(input(free, [demand('ep1', { memoryBytes: GB, wanted: 3 })])))).toEqual(['n1', 'n2', 'n3']);
    const racks = [node('n1', [80 * GB], { failureDomain: 'a' }), node('n2', [80 * GB], { failureDomain: 'a' }), node('n3', [80 * GB], { failureDomain: 'b' })];
    expect(nodesOf(planReplicas(input(racks, [demand('ep1', { memoryBytes: GB, wanted: 2 })])))).toEqual(['n1', 'n3']);
    const crowded = planReplicas(input([node('n1', [80 * GB]), node('n2', [GB])], [demand('ep1', { wanted: 2 })]));
    expect(nodesOf(crowded)).toEqual(['n1', 'n1']);
    expect(crowded.placements[1]?.reason.summary).toContain('no other failure domain has room');
  });

  test('leaves whole accelerators whole', () => {
    const plan = planReplicas(input([node('n1', [80 * GB, 80 * GB])], [demand('ep1', { memoryBytes: GB })], [holding('n1', ['n1_acc1'], 2 * GB)]));
    expect(acceleratorsOf(plan)).toEqual(['n1_acc1']);
  });

  test('prefers a node that has the artifacts', () => {
    const plan = planReplicas(input([node('n1', [24 * GB]), node('n2', [28 * GB])], [demand('ep1', { warmNodeIds: new Set(['n2']) })]));
    expect(nodesOf(plan)).toEqual(['n2']);
    expect(plan.placements[0]?.reason.summary).toContain('ran this model version before');
  });

  test('avoids a node where its starts fail, but takes it when there is no other', () => {
    const failing = demand('ep1', { failuresByNode: new Map([['n1', 1]]) });
    expect(nodesOf(planReplicas(input([node('n1', [12 * GB]), node('n2', [80 * GB])], [failing])))).toEqual(['n2']);
    expect(nodesOf(planReplicas(input([node('n1', [12 * GB])], [failing])))).toEqual(['n1']);
  });

  test('takes a GPU before the CPU when the type is left open, and only the type that was asked for', () => {
    const mixed = node('n1', [], { accelerators: [accelerator('cpu', 11 * GB, { type: 'cpu', islandId: null }), accelerator('gpu', 24 * GB, { type: 'l4', islandId: null })] });
    expect(acceleratorsOf(planReplicas(input([mixed], [demand('ep1')])))).toEqual(['gpu']);
    expect(acceleratorsOf(planReplicas(input([mixed], [demand('ep1', { acceleratorType: 'cpu' })])))).toEqual(['cpu']);
  });

  test('puts a tensor-parallel group on untouched accelerators of one island', () => {
    const nodes = [node('n1', [80 * GB]), node('n2', [80 * GB, 80 * GB, 80 * GB, 80 * GB])];
    const pair = demand('ep1', { memoryBytes: 140 * GB, acceleratorCount: 2 });
    const plan = planReplicas(input(nodes, [pair], [holding('n2', ['n2_acc1'], 20 * GB)]));
    expect(plan.placements[0]).toMatchObject({ members: [{ nodeId: 'n2', acceleratorIds: ['n2_acc0', 'n2_acc2'] }], reservedBytes: 140 * GB, computeMilli: 1_000 });
    const pairs = node('n3', [], { accelerators: ['a', 'a', 'b', 'b'].map((islandId, index) => accelerator(`g${index}`, 80 * GB, { islandId })) });
    expect(acceleratorsOf(planReplicas(input([pairs], [pair], [holding('n3', ['g0'], GB)])))).toEqual(['g2', 'g3']);
    expect(planReplicas(input([pairs], [pair], [holding('n3', ['g0'], GB), holding('n3', ['g2'], GB)])).refusals).toMatchObject([{ code: 'no_room' }]);
  });

  test('reserves compute, CPU and host memory, and never more than there is', () => {
    const half = demand('ep1', { wanted: 3, memoryBytes: GB, rules: { computeMilli: 500 } });
    const plan = planReplicas(input([node('n1', [80 * GB])], [half]));
    expect([plan.placements.length, plan.refusals[0]?.code]).toEqual([2, 'no_room']);
    const cpuBound = demand('ep1', { wanted: 3, memoryBytes: GB, rules: { cpuMilli: 30_000, hostMemoryBytes: GB } });
    const bound = planReplicas(input([node('n1', [80 * GB])], [cpuBound]));
    expect([bound.placements.length, bound.refusals[0]?.candidates[0]?.excluded]).toEqual([2, 'its CPU or host memory is taken']);
  });

  test('a share goes where the typical replica loses least', () => {
    const nodes = [node('n1', [80 * GB, 80 * GB])];
    const demands = [demand('whole', { wanted: 1, memoryBytes: 60 * GB, rules: { computeMilli: 1_000 } }), demand('half', { wanted: 2, memoryBytes: 20 * GB, rules: { computeMilli: 500 } })];
    const plan = planReplicas(input(nodes, demands));
    expect(plan.placements.map((placement) => `${placement.endpointId} ${placement.members[0]?.acceleratorIds[0]}`).sort()).toEqual(['half n1_acc1', 'half n1_acc1', 'whole n1_acc0']);
  });

  test('a gang takes all its nodes or none', () => {
    const nodes = [node('n1', Array(8).fill(80 * GB)), node('n2', Array(8).fill(80 * GB)), node('n3', [80 * GB])];
    const gang = demand('big', { memoryBytes: 1_000 * GB, acceleratorCount: 8, rules: { nodes: 2 } });
    const plan = planReplicas(input(nodes, [gang]));
    expect(plan.placements).toHaveLength(1);
    expect(plan.placements[0]?.members.map((member) => [member.nodeId, member.acceleratorIds.length])).toEqual([['n1', 8], ['n2', 8]]);
    const half = planReplicas(input(nodes, [gang], [holding('n2', ['n2_acc0'], GB)]));
    expect([half.placements.length, half.refusals[0]?.code, half.refusals[0]?.candidates.find((candidate) => candidate.nodeId === 'n1')?.excluded]).toEqual([0, 'no_room', 'it has room, but fewer than 2 nodes of its kind have']);
  });

  test('gives every endpoint its first replica before any gets a second', () => {
    const plan = planReplicas(input([node('n1', [30 * GB])], [demand('big', { memoryBytes: 12 * GB, wanted: 3 }), demand('small', { memoryBytes: 8 * GB })]));
    expect(plan.placements.map((placement) => placement.endpointId)).toEqual(['big', 'small']);
    expect(plan.refusals).toMatchObject([{ endpointId: 'big', code: 'no_memory', wantedReplicas: 3, placedReplicas: 1 }]);
  });

  test('counts what is decided and not placed yet', () => {
    const pending = demand('ep1', { wanted: 1, pending: [{ replicaId: 'r1', nodeIds: ['n1'], replaces: null }] });
    expect(planReplicas(input([node('n1', [80 * GB])], [pending]))).toEqual({ placements: [], drains: [], refusals: [], retryAtMs: null });
  });

  test('an exclusive device has no room beside a replica, however small', () => {
    const alone = node('n1', [], { accelerators: ['a', 'b'].map((id) => accelerator(id, 80_000, { isExclusive: true })) });
    const plan = planReplicas(input([alone], [demand('ep1', { memoryBytes: 10, wanted: 3 })]));
    expect(plan.placements.map((placement) => placement.members[0]?.acceleratorIds)).toEqual([['a'], ['b']]);
    expect(plan.refusals).toMatchObject([{ code: 'no_memory', wantedReplicas: 3, placedReplicas: 2 }]);
    expect(acceleratorsOf(planReplicas(input([alone], [demand('ep2', { memoryBytes: 0 })], [holding('n1', ['a'], 0)])))).toEqual(['b']);
  });
});

describe('MIG', () => {
  test('takes the smallest instance that holds the replica, where it keeps large ones possible', () => {
    const plan = planReplicas(input([migNode('n1')], [demand('ep1', { memoryBytes: 9 * GB })]));
    expect(plan.placements[0]).toMatchObject({ mig: { profile: '1g.10gb', start: 6 }, members: [{ acceleratorIds: ['n1_acc0'] }] });
    expect(plan.placements[0]?.reason.summary).toBe('the only node that fits: 1g.10gb at slice 6 of n1_acc0 of host-n1');
  });

  test('uses an idle instance that exists before it makes one', () => {
    const plan = planReplicas(input([migNode('n1', [{ profile: '1g.10gb', start: 2 }])], [demand('ep1', { memoryBytes: 9 * GB })]));
    expect(plan.placements[0]?.mig).toEqual({ profile: '1g.10gb', start: 2 });
  });

  test('never lends a slice twice', () => {
    const three = demand('ep1', { memoryBytes: 30 * GB, wanted: 3, rules: { migProfile: '3g.40gb' } });
    const plan = planReplicas(input([migNode('n1')], [three]));
    expect(plan.placements.map((placement) => placement.mig?.start).sort()).toEqual([0, 4]);
    expect(plan.refusals).toMatchObject([{ code: 'no_room', candidates: [{ excluded: 'no slices are free for 3g.40gb' }] }]);
    const held = holding('n1', ['n1_acc0'], GB, { mig: { profile: '1g.10gb', start: 1 } });
    expect(planReplicas(input([migNode('n1')], [{ ...three, wanted: 1 }], [held])).placements[0]?.mig?.start).toBe(4);
  });

  test('closes a GPU whose holdings contradict its geometry', () => {
    const odd = [holding('n1', ['n1_acc0'], GB, { mig: { profile: '9g.99gb', start: 0 } })];
    expect(planReplicas(input([migNode('n1')], [demand('ep1', { memoryBytes: GB })], odd)).refusals).toMatchObject([{ code: 'no_room' }]);
  });
});

describe('closed nodes', () => {
  const pinned = (nodeId: string) => demand('ep1', { rules: { pinnedNodeIds: [nodeId] } });

  test('cordons, drains, taints, pins and spot nodes are kept away from, each with its reason', () => {
    const nodes = [
      node('n1', [80 * GB], { cordonReason: 'upgrade' }), node('n2', [80 * GB], { drainReason: 'upgrade' }), node('n3', [80 * GB], { taints: ['dedicated'] }), node('n4', [80 * GB], { market: 'spot' }), node('n5', [80 * GB], { reclaimAtMs: 2_000_000 }),
    ];
    const refused = planReplicas(input(nodes, [demand('ep1')])).refusals[0];
    expect(refused).toMatchObject({ code: 'not_allowed' });
    expect(refused?.candidates.map((candidate) => candidate.excluded)).toEqual([
      'it is cordoned: upgrade', 'it drains: upgrade', 'it has the taint dedicated', 'it may be taken back at short notice, and the endpoint allows no spot nodes', 'its owner takes it back',
    ]);
    expect(nodesOf(planReplicas(input(nodes, [demand('ep1', { rules: { tolerations: ['dedicated'] } })])))).toEqual(['n3']);
    expect(nodesOf(planReplicas(input(nodes, [demand('ep1', { rules: { allowsSpot: true } })])))).toEqual(['n4']);
    expect(nodesOf(planReplicas(input([node('n6', [80 * GB]), node('n7', [80 * GB])], [pinned('n7')])))).toEqual(['n7']);
  });

  test('a spot node is taken where it is allowed and cheaper', () => {
    const nodes = [node('n1', [81_101 * 1_048_576]), node('n2', [81_101 * 1_048_576], { market: 'spot' })];
    expect(nodesOf(planReplicas(input(nodes, [demand('ep1', { rules: { allowsSpot: true, computeMilli: 1_000 } })])))).toEqual(['n2']);
    expect(planReplicas(input(nodes, [demand('ep1', { rules: { computeMilli: 1_000 } })])).placements[0]?.option).toEqual({ precision: null, market: 'on_demand', dollarsPerHour: 3.5 });
  });

  test('a node that drains gets successors elsewhere first, and its replicas drain once they are ready', () => {
    const nodes = [node('n1', [80 * GB], { drainReason: 'upgrade' }), node('n2', [80 * GB])];
    const old = replica('r1');
    const first = planReplicas(input(nodes, [demand('ep1', { replicas: [old] })]));
    expect(first).toMatchObject({ drains: [], placements: [{ members: [{ nodeId: 'n2' }], replaces: 'r1', reason: { summary: expect.stringContaining('host-n1 drains: upgrade; ') as unknown } }] });
    const starting = replica('r2', { nodeIds: ['n2'], isReady: false, replaces: 'r1' });
    expect(planReplicas(input(nodes, [demand('ep1', { replicas: [old, starting] })]))).toMatchObject({ drains: [], placements: [] });
    const ready = planReplicas(input(nodes, [demand('ep1', { replicas: [old, { ...starting, isReady: true }] })]));
    expect(ready.drains).toEqual([{ endpointId: 'ep1', replicaId: 'r1', reason: 'r2 is ready in its place' }]);
    expect(planReplicas(input([nodes[0]!], [demand('ep1', { replicas: [old] })])).refusals).toMatchObject([{ code: 'not_allowed', reason: expect.stringContaining('host-n1 drains: upgrade: ') as unknown }]);
  });

  test('a node that is taken back drains in time, successors or not', () => {
    const leaving = (reclaimAtMs: number) => planReplicas(input([node('n1', [80 * GB], { reclaimAtMs })], [demand('ep1', { replicas: [replica('r1')] })]));
    expect(leaving(1_100_000).drains).toEqual([]);
    expect(leaving(1_020_000).drains).toMatchObject([{ replicaId: 'r1' }]);
  });
});

describe('what is refused', () => {
  const refusal = (nodes: Parameters<typeof input>[0], wish: Parameters<typeof demand>[1] = {}) => planReplicas(input(nodes, [demand('ep1', wish)])).refusals[0];

  test('names the nearest miss', () => {
    expect(refusal([])).toMatchObject({ code: 'no_node', candidates: [] });
    expect(refusal([node('n1', [80 * GB], { engines: [{ kind: 'vllm' }] })])).toMatchObject({ code: 'no_engine', candidates: [{ nodeId: 'n1', excluded: 'llama.cpp is not installed' }] });
    expect(refusal([node('n1', [80 * GB])], { acceleratorCount: 2 })).toMatchObject({ code: 'no_matching_accelerator' });
    const full = planReplicas(input([node('n1', [12 * GB])], [demand('ep1')], [holding('n1', ['n1_acc0'], 3 * GB)])).refusals[0];
    expect(full).toMatchObject({ code: 'no_memory', reason: 'no accelerator has 10.0 GB free: add a node, or lower slots, context or replicas', hint: null });
  });

  test('an impossible demand, with what would fit', () => {
    const l4 = node('n1', Array(4).fill(24 * GB), { accelerators: [0, 1, 2, 3].map((index) => accelerator(`l4_${index}`, 24 * GB, { type: 'l4', islandId: null })) });
    const huge = refusal([l4], { acceleratorType: 'l4', memoryBytes: 410 * GB });
    expect(huge).toMatchObject({ code: 'impossible', reason: 'no l4 of this fleet holds 410 GB on one accelerator, not even empty' });
    expect(huge?.hint).toBe('8 x A100-80GB-SXM would hold its 410 GB; this fleet has l4');
    const medium = refusal([l4, node('n2', Array(8).fill(80 * GB))], { acceleratorType: 'l4', memoryBytes: 140 * GB });
    expect(medium?.hint).toBe('2 x h100 of this fleet would hold its 140 GB; this fleet has h100, l4');
  });

  test('an unknown GPU type, and a MIG profile that the GPU lacks, with what there is', () => {
    expect(refusal([node('n1', [80 * GB])], { acceleratorType: 'h1000' })).toMatchObject({ code: 'no_matching_accelerator', hint: '1 x h100 of this fleet would hold its 10.0 GB; this fleet has h100' });
    const odd = refusal([migNode('n1')], { memoryBytes: GB, rules: { migProfile: '5g.50gb' } });
    expect(odd).toMatchObject({ code: 'no_matching_accelerator' });
    expect(odd?.hint).toBe('a100 has no MIG profile 5g.50gb; it has 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb');
    expect(refusal([migNode('n1')], { memoryBytes: 15 * GB, rules: { migProfile: '1g.10gb' } })).toMatchObject({ code: 'impossible' });
  });

  test('a profile with holes', () => {
    expect(refusal([node('n1', [80 * GB])], { profileHoles: ['weightBytes'] })).toMatchObject({ code: 'impossible', reason: 'nothing can be planned for it: its profile lacks weightBytes' });
  });

  test('waits after failures, and says so after several', () => {
    const backoff = { failuresInRow: 2, retryAtMs: 1_000_500, lastFailure: 'engine_exited: signal' };
    const nodes = [node('n1', [80 * GB])];
    expect(planReplicas(input(nodes, [demand('ep1', { backoff })]))).toEqual({ placements: [], drains: [], refusals: [], retryAtMs: 1_000_500 });
    expect(planReplicas(input(nodes, [demand('ep1', { backoff: { ...backoff, failuresInRow: 5 } })])).refusals).toMatchObject([{ code: 'start_backoff', reason: '5 starts failed in a row; the last one: engine_exited: signal' }]);
    expect(planReplicas(input(nodes, [demand('ep1', { backoff: { ...backoff, retryAtMs: 1_000_000 } })])).placements).toHaveLength(1);
  });
});

describe('which replica is drained', () => {
  const drained = (replicas: readonly PlacedReplica[], wanted: number, nodes: Parameters<typeof input>[0] = []) => planReplicas(input(nodes, [demand('ep1', { wanted, replicas })])).drains.map((drain) => drain.replicaId);

  test('one on a leaving node, then one that is not ready, then the least loaded, then the youngest', () => {
    const old = replica('r1', { placedAtMs: 1, running: 3 });
    const young = replica('r2', { placedAtMs: 2, running: 3 });
    const idle = replica('r3', { placedAtMs: 1, running: 0 });
    const starting = replica('r4', { placedAtMs: 0, isReady: false });
    expect(drained([old, young, idle, starting], 3)).toEqual(['r4']);
    expect(drained([old, young, idle, starting], 0).sort()).toEqual(['r1', 'r2', 'r3', 'r4']);
    expect(drained([old, young], 2)).toEqual([]);
    expect(drained([old, { ...young, nodeIds: ['n9'] }, idle], 2, [node('n9', [GB], { drainReason: 'x' })])).toEqual(['r2']);
  });

  test('a replica and its successor count once, and go together when they are too many', () => {
    const pair = [replica('r1'), replica('r2', { replaces: 'r1', isReady: false })];
    expect(drained(pair, 1)).toEqual([]);
    expect(drained(pair, 0)).toEqual(['r1', 'r2']);
  });
});
