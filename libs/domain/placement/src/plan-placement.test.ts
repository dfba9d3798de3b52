import { placementRefusedV2, replicaPlacedV2 } from '@penstock/contract-events';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Capacity, shareOf } from './capacity.js';
import type { PlacedReplica, PlacementDemand, PlacementInput, PlacementNode, Reservation } from './placement-input.js';
import { planPlacement } from './plan-placement.js';

const GB = 1_000_000_000;

function node(nodeId: string, memories: readonly number[], overrides: Partial<PlacementNode> = {}, type = 'h100'): PlacementNode {
  const accelerators = memories.map((memoryBytes, index) => ({ acceleratorId: `${nodeId}_acc${index}`, type, memoryBytes }));
  return { nodeId, hostname: `host-${nodeId}`, accelerators, engines: [{ kind: 'llama.cpp' }], ...overrides };
}

function demand(endpointId: string, overrides: Partial<PlacementDemand> = {}): PlacementDemand {
  return {
    endpointId, modelVersionId: `mv_${endpointId}`, engine: 'llama.cpp', acceleratorType: null, acceleratorCount: 1, memoryBytes: 10 * GB, wanted: 1,
    replicas: [], pendingNodeIds: [], warmNodeIds: new Set(), failuresByNode: new Map(), backoff: null, drainReason: 'fewer are wanted', ...overrides,
  };
}

function input(nodes: readonly PlacementNode[], demands: readonly PlacementDemand[], reservations: readonly Reservation[] = []): PlacementInput {
  return { nodes, demands, reservations, nowMs: 1_000_000 };
}

function replica(replicaId: string, overrides: Partial<PlacedReplica> = {}): PlacedReplica {
  return { replicaId, nodeId: 'n1', isReady: true, placedAtMs: 1, running: null, ...overrides };
}

const nodesOf = (plan: ReturnType<typeof planPlacement>) => plan.placements.map((placement) => placement.members[0]?.nodeId);

describe('where a replica goes', () => {
  test('to the accelerator that it fills best, with the reason and all candidates', () => {
    const plan = planPlacement(input([node('n1', [80 * GB]), node('n2', [24 * GB, 12 * GB]), node('n3', [80 * GB], { engines: [] })], [demand('ep1')]));
    expect(plan.placements[0]).toMatchObject({ endpointId: 'ep1', members: [{ nodeId: 'n2', acceleratorIds: ['n2_acc1'] }], reservedBytes: 10 * GB });
    expect(plan.placements[0]?.reason.summary).toBe('best fit of 2 nodes: 2.0 GB stay free on n2_acc1 of host-n2');
    expect(plan.placements[0]?.reason.candidates).toEqual([
      { nodeId: 'n2', score: 1.83, excluded: null },
      { nodeId: 'n1', score: 1.13, excluded: null },
      { nodeId: 'n3', score: null, excluded: 'llama.cpp is not installed' },
    ]);
  });

  test('spreads over nodes where the fit is about the same', () => {
    const nodes = [node('n1', [80 * GB]), node('n2', [80 * GB]), node('n3', [80 * GB])];
    expect(nodesOf(planPlacement(input(nodes, [demand('ep1', { memoryBytes: GB, wanted: 3 })])))).toEqual(['n1', 'n2', 'n3']);
  });

  test('leaves whole accelerators whole', () => {
    const reserved = [{ nodeId: 'n1', acceleratorIds: ['n1_acc1'], reservedBytes: 2 * GB }];
    const plan = planPlacement(input([node('n1', [80 * GB, 80 * GB])], [demand('ep1', { memoryBytes: GB })], reserved));
    expect(plan.placements[0]?.members[0]?.acceleratorIds).toEqual(['n1_acc1']);
  });

  test('prefers a node that has the artifacts', () => {
    const plan = planPlacement(input([node('n1', [24 * GB]), node('n2', [28 * GB])], [demand('ep1', { warmNodeIds: new Set(['n2']) })]));
    expect(plan.placements[0]?.members[0]?.nodeId).toBe('n2');
    expect(plan.placements[0]?.reason.summary).toContain('ran this model version before');
  });

  test('avoids a node where its starts fail, but takes it when there is no other', () => {
    const failing = demand('ep1', { failuresByNode: new Map([['n1', 1]]) });
    expect(nodesOf(planPlacement(input([node('n1', [12 * GB]), node('n2', [80 * GB])], [failing])))).toEqual(['n2']);
    expect(nodesOf(planPlacement(input([node('n1', [12 * GB])], [failing])))).toEqual(['n1']);
  });

  test('takes a GPU before the CPU when the type is left open, and only the type that was asked for', () => {
    const mixed: PlacementNode = { ...node('n1', []), accelerators: [{ acceleratorId: 'cpu', type: 'cpu', memoryBytes: 11 * GB }, { acceleratorId: 'gpu', type: 'l4', memoryBytes: 24 * GB }] };
    expect(planPlacement(input([mixed], [demand('ep1')])).placements[0]?.members[0]?.acceleratorIds).toEqual(['gpu']);
    expect(planPlacement(input([mixed], [demand('ep1', { acceleratorType: 'cpu' })])).placements[0]?.members[0]?.acceleratorIds).toEqual(['cpu']);
  });

  test('spreads one replica over several accelerators of one node', () => {
    const nodes = [node('n1', [80 * GB]), node('n2', [80 * GB, 80 * GB, 80 * GB, 80 * GB])];
    const plan = planPlacement(input(nodes, [demand('ep1', { memoryBytes: 140 * GB, acceleratorCount: 2 })], [{ nodeId: 'n2', acceleratorIds: ['n2_acc1'], reservedBytes: 20 * GB }]));
    expect(plan.placements[0]).toMatchObject({ members: [{ nodeId: 'n2', acceleratorIds: ['n2_acc0', 'n2_acc2'] }], reservedBytes: 140 * GB });
  });

  test('gives every endpoint its first replica before any gets a second', () => {
    const plan = planPlacement(input([node('n1', [30 * GB])], [demand('big', { memoryBytes: 12 * GB, wanted: 3 }), demand('small', { memoryBytes: 8 * GB })]));
    expect(plan.placements.map((placement) => placement.endpointId)).toEqual(['big', 'small']);
    expect(plan.refusals).toMatchObject([{ endpointId: 'big', code: 'no_memory', wantedReplicas: 3, placedReplicas: 1 }]);
  });

  test('counts what is decided and not placed yet', () => {
    const pending = demand('ep1', { wanted: 1, pendingNodeIds: ['n1'] });
    expect(planPlacement(input([node('n1', [80 * GB])], [pending]))).toEqual({ placements: [], drains: [], refusals: [], retryAtMs: null });
  });
});

describe('what is refused', () => {
  const code = (nodes: readonly PlacementNode[], wish: Partial<PlacementDemand> = {}) => planPlacement(input(nodes, [demand('ep1', wish)])).refusals[0];

  test('names the nearest miss', () => {
    expect(code([])).toMatchObject({ code: 'no_node', candidates: [] });
    expect(code([node('n1', [80 * GB], { engines: [{ kind: 'vllm' }] })])).toMatchObject({ code: 'no_engine', candidates: [{ nodeId: 'n1', excluded: 'llama.cpp is not installed' }] });
    expect(code([node('n1', [80 * GB])], { acceleratorType: 'a100' })).toMatchObject({ code: 'no_matching_accelerator' });
    expect(code([node('n1', [80 * GB])], { acceleratorCount: 2 })).toMatchObject({ code: 'no_matching_accelerator' });
    expect(code([node('n1', [9 * GB]), node('n2', [9 * GB], { engines: [] })])).toMatchObject({ code: 'no_memory', reason: 'no accelerator has 10.0 GB free: add a node, or lower slots, context or replicas' });
  });

  test('waits after failures, and says so after several', () => {
    const backoff = { failuresInRow: 2, retryAtMs: 1_000_500, lastFailure: 'engine_exited: signal' };
    const quiet = planPlacement(input([node('n1', [80 * GB])], [demand('ep1', { backoff })]));
    expect(quiet).toEqual({ placements: [], drains: [], refusals: [], retryAtMs: 1_000_500 });
    const told = planPlacement(input([node('n1', [80 * GB])], [demand('ep1', { backoff: { ...backoff, failuresInRow: 5 } })]));
    expect(told.refusals).toMatchObject([{ code: 'start_backoff', reason: '5 starts failed in a row; the last one: engine_exited: signal' }]);
    const due = planPlacement(input([node('n1', [80 * GB])], [demand('ep1', { backoff: { ...backoff, retryAtMs: 1_000_000 } })]));
    expect(due.placements).toHaveLength(1);
  });
});

describe('which replica is drained', () => {
  const drained = (replicas: readonly PlacedReplica[], wanted: number) => planPlacement(input([], [demand('ep1', { wanted, replicas })])).drains.map((drain) => drain.replicaId);

  test('one that is not ready, then the least loaded, then the youngest', () => {
    const old = replica('r1', { placedAtMs: 1, running: 3 });
    const young = replica('r2', { placedAtMs: 2, running: 3 });
    const idle = replica('r3', { placedAtMs: 1, running: 0 });
    const starting = replica('r4', { placedAtMs: 0, isReady: false });
    expect(drained([old, young, idle, starting], 3)).toEqual(['r4']);
    expect(drained([old, young, idle, starting], 0)).toEqual(['r4', 'r3', 'r2', 'r1']);
    expect(drained([old, young], 2)).toEqual([]);
  });
});

const anyNode = fc.tuple(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 4 }), fc.constantFrom('h100', 'cpu'), fc.boolean());
const anyFleet = fc.array(anyNode, { maxLength: 6 }).map((shapes) =>
  shapes.map(([memories, type, hasEngine], index) => node(`n${index}`, memories.map((gb) => gb * GB), hasEngine ? {} : { engines: [] }, type)));
const anyDemands = fc.array(fc.record({
  memoryBytes: fc.integer({ min: 0, max: 60 * GB }),
  acceleratorCount: fc.integer({ min: 1, max: 3 }),
  acceleratorType: fc.constantFrom(null, 'h100', 'cpu'),
  wanted: fc.nat(4),
  warmNodeIds: fc.subarray(['n0', 'n1', 'n2']).map((ids) => new Set(ids)),
}), { maxLength: 6 }).map((wishes) => wishes.map((wish, index) => demand(`ep${index}`, wish)));

describe('on any fleet', () => {
  test('memory is never overcommitted, nothing that fits is refused, and the bodies keep to their contracts', () => {
    fc.assert(fc.property(anyFleet, anyDemands, (nodes, demands) => {
      const plan = planPlacement(input(nodes, demands));
      const capacity = new Capacity(nodes, plan.placements.flatMap(({ members, reservedBytes }) => members.map((member) => ({ ...member, reservedBytes }))));
      for (const host of nodes) for (const accelerator of host.accelerators) expect(capacity.freeBytes(host, accelerator)).toBeGreaterThanOrEqual(0);
      for (const placement of plan.placements) {
        expect(new Set(placement.members[0]?.acceleratorIds).size).toBe(demands.find((wish) => wish.endpointId === placement.endpointId)?.acceleratorCount);
        replicaPlacedV2.schema.parse({ replicaId: 'rep_1', ...placement });
      }
      for (const wish of demands) {
        const placed = plan.placements.filter((placement) => placement.endpointId === wish.endpointId).length;
        const refusal = plan.refusals.find((candidate) => candidate.endpointId === wish.endpointId);
        expect(refusal === undefined).toBe(placed === wish.wanted);
        if (refusal === undefined) continue;
        placementRefusedV2.schema.parse(refusal);
        expect(nodes.some((host) => fits(host, wish, capacity))).toBe(false);
      }
    }), { numRuns: 300 });
  });

  test('the same input in another order gives the same plan', () => {
    fc.assert(fc.property(anyFleet, anyDemands, (nodes, demands) => {
      const plan = planPlacement(input(nodes, demands));
      const mirrored = planPlacement(input([...nodes].reverse(), [...demands].reverse()));
      expect(mirrored.placements).toEqual(plan.placements);
    }));
  });
});

/** Told apart from the planner: counts accelerators of each type with room. */
function fits(host: PlacementNode, wish: PlacementDemand, capacity: Capacity): boolean {
  if (!host.engines.some((engine) => engine.kind === wish.engine)) return false;
  const share = shareOf(wish.memoryBytes, wish.acceleratorCount);
  return ['h100', 'cpu'].some((type) => {
    if (wish.acceleratorType !== null && wish.acceleratorType !== type) return false;
    return host.accelerators.filter((accelerator) => accelerator.type === type && capacity.freeBytes(host, accelerator) >= share).length >= wish.acceleratorCount;
  });
}
