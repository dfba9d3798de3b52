import { describe, expect, test } from '@jest/globals';
import { Capacity } from './capacity.js';
import type { PlacementNode } from './placement-input.js';
import { planPlacement } from './plan-placement.js';

const node: PlacementNode = {
  nodeId: 'node_1', hostname: 'gpu-1', engines: [{ kind: 'vllm' }],
  accelerators: ['a', 'b'].map((acceleratorId) => ({ acceleratorId, type: 'h100', memoryBytes: 80_000, isExclusive: true })),
};

describe('an accelerator that one replica holds alone', () => {
  test('has no room beside a replica, however small, even one that needs no memory', () => {
    const capacity = new Capacity([node], [{ nodeId: 'node_1', acceleratorIds: ['a'], reservedBytes: 0 }]);
    expect(node.accelerators.map((accelerator) => capacity.freeBytes(node, accelerator) >= 0)).toEqual([false, true]);
  });

  test('takes one replica each, and one more is refused', () => {
    const demand = {
      endpointId: 'ep_1', modelVersionId: 'mv_1', engine: 'vllm' as const, acceleratorType: 'h100', acceleratorCount: 1, memoryBytes: 10, wanted: 3, replicas: [], pendingNodeIds: [],
      warmNodeIds: new Set<string>(), failuresByNode: new Map<string, number>(), backoff: null, drainReason: '',
    };
    const plan = planPlacement({ nodes: [node], reservations: [], demands: [demand], nowMs: 0 });
    expect(plan.placements.map((placement) => placement.members[0]?.acceleratorIds)).toEqual([['a'], ['b']]);
    expect(plan.refusals).toMatchObject([{ code: 'no_memory', wantedReplicas: 3, placedReplicas: 2 }]);
  });
});
