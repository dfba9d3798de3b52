import type { NodeView, ReplicaView } from '@penstock/contract-commands';
import { nodeJoinedV2, replicaPlacedV2 } from '@penstock/contract-events';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { describeFleet } from './describe-fleet.js';
import { drawDevice, drawFleet } from './draw-fleet.js';

const plain = { device: null, usableBytes: 80e9, computeMilli: 1_000, islandId: null, mig: null };

const node: NodeView = {
  ...nodeJoinedV2.schema.parse(nodeJoinedV2.example), hostname: 'gpu-1', status: 'up', statusReason: null, cordonReason: null, drainReason: null, reclaimAt: null, joinedAt: '2026-11-29T12:00:00.000Z',
  accelerators: [...[0, 1].map((index) => ({ acceleratorId: `gpu_${index}`, type: 'h100', memoryBytes: 80e9, ...plain })), { acceleratorId: 'mig_0', type: 'h100-mig-1g.10gb', memoryBytes: 10e9, ...plain }],
};

function replica(replicaId: string, acceleratorIds: string[], reservedBytes: number, endpointId = 'ep_01'): ReplicaView {
  const { endpointId: _endpointId, reason, ...placed } = replicaPlacedV2.schema.parse(replicaPlacedV2.example);
  return {
    ...placed, replicaId, nodeId: 'node_01', acceleratorIds, members: [{ nodeId: 'node_01', acceleratorIds }], reservedBytes, endpointId, phase: 'ready', url: null, engine: null, slots: null, placementReason: reason, reason: null,
    phaseSince: '2026-11-29T12:00:00.000Z', createdAt: '2026-11-29T12:00:00.000Z',
  };
}

describe('the fleet in the terminal', () => {
  test('draws devices to one scale, with a letter for each endpoint', () => {
    const fleet = describeFleet({ nodes: [node], replicas: [replica('rep_01', ['gpu_0', 'gpu_1'], 80e9), replica('rep_02', ['gpu_0'], 20e9, 'ep_02'), replica('rep_03', ['mig_0'], 5e9)] }, []);
    const lines = drawFleet(fleet, 100);
    expect(lines).toContain('    [AAAAAAAAAAAABBBBBB······] [AAAAAAAAAAAA············]');
    expect(lines).toContain('    [AA·]');
    expect(lines[0]).toBe('1 of 1 nodes up, 3 of 3 devices held, 105.0 GB of 170.0 GB set aside');
    expect(lines).toContain('A ep_01 (ep_01)');
  });

  test('says so when a node is lost, offers nothing, or no node is there', () => {
    const cordoned = { ...node, accelerators: [], status: 'lost' as const, statusReason: 'no heartbeat' };
    const lines = drawFleet(describeFleet({ nodes: [cordoned], replicas: [replica('rep_01', ['gpu_0'], 1)] }, []), 80).join('\n');
    expect(lines).toContain('LOST: no heartbeat');
    expect(lines).toContain('rep_01 runs on a device that is not offered any more');
    expect(drawFleet(describeFleet({ nodes: [], replicas: [] }, []), 80)).toHaveLength(1);
  });

  test('property: a bar is as long as its device, whatever holds it', () => {
    const held = fc.array(fc.record({ replicaId: fc.constant('r'), endpointId: fc.constantFrom('a', 'b'), endpointName: fc.constant('n'), phase: fc.constant('ready' as const), bytes: fc.nat(200) }), { maxLength: 30 });
    fc.assert(fc.property(held, fc.integer({ min: 1, max: 100 }), (holders, memoryBytes) => {
      const bar = drawDevice({ acceleratorId: 'x', type: 't', memoryBytes, usedBytes: 0, held: holders, mig: null }, new Map(), 0.24);
      expect(bar).toHaveLength(2 + Math.max(1, Math.round(memoryBytes * 0.24)));
    }));
  });

  test('draws MIG instances to scale, in use and idle, and says which nodes are closed', () => {
    const a100 = { acceleratorId: 'a100_0', type: 'a100', memoryBytes: 81_920 * 1_048_576, device: 'GPU-1', usableBytes: 80_896 * 1_048_576, computeMilli: 1_000, islandId: null, mig: { isEnabled: true, instances: [{ profile: '3g.40gb', start: 0, uuid: null }, { profile: '1g.10gb', start: 6, uuid: null }] } };
    const split: NodeView = { ...node, accelerators: [a100], cordonReason: 'upgrade' };
    const holder = { ...replica('rep_01', ['a100_0'], 30e9), mig: { profile: '3g.40gb', start: 0 } };
    const lines = drawFleet(describeFleet({ nodes: [split], replicas: [holder] }, []), 100);
    expect(lines).toContain('    [AAAAAAAAAAAA|······|---|···]');
    expect(lines.find((line) => line.startsWith('gpu-1'))).toContain('cordoned: upgrade');
  });
});
