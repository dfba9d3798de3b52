import { cordonNode, deployEndpoint, registerModelVersion } from '@penstock/contract-commands';
import { nodeJoinedV2 } from '@penstock/contract-events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorld, type World } from '../gateway-world-suite.js';

let world: World;

beforeAll(async () => {
  world = await startWorld();
  await world.append('fleet', 'node', 'node_01', { type: 'node.joined.v2', data: nodeJoinedV2.example });
});

afterAll(() => world.close());

const post = async (path: string, body: object = {}, key?: string) => {
  const answer = await world.fetch(path, { method: 'POST', body: JSON.stringify(body), ...(key === undefined ? {} : { key }) });
  return { status: answer.status, body: (await answer.json()) as { error?: { code: string; param: string; message: string }; node?: { cordonReason: string } } };
};

describe('operations on nodes', () => {
  test('reach the scheduler with their reason, and its refusals come back with the field', async () => {
    const node = { ...nodeJoinedV2.schema.parse(nodeJoinedV2.example), cordonReason: 'upgrade', drainReason: null, reclaimAt: null, status: 'up' as const, statusReason: null, joinedAt: '2026-11-29T12:00:00.000Z' };
    world.commands.serve(cordonNode, async ({ nodeId, reason }) => (nodeId === 'node_01' ? { kind: 'ok', value: { node: { ...node, cordonReason: reason } } } : { kind: 'refused', refusal: { code: 'not_found', message: `There is no node ${nodeId}.`, param: 'nodeId' } }));
    expect(await post('/admin/v1/nodes/node_01/cordon', { reason: 'upgrade' })).toMatchObject({ status: 200, body: { node: { cordonReason: 'upgrade' } } });
    expect(await post('/admin/v1/nodes/node_02/cordon')).toMatchObject({ status: 404, body: { code: 'not_found', param: 'node_id' } });
    expect(await post('/admin/v1/nodes/no%20id/cordon')).toMatchObject({ status: 404, body: { param: 'node_id' } });
    expect(await post('/admin/v1/nodes/node_01/reclaim', { in_seconds: -1 })).toMatchObject({ status: 400, body: { param: 'in_seconds' } });
  });
});

describe('a wish for hardware that nothing can give', () => {
  const deploy = (hardware: object) => post('/v1/models/deploy', { model_name: 'wish', model_artifact: 'sim://', framework: 'engine-sim', hardware });

  test('is refused with the field and what there is', async () => {
    expect(await deploy({ gpu_type: 'h1000' })).toMatchObject({ status: 400, body: { error: { code: 'invalid_value', param: 'hardware.gpu_type', message: expect.stringContaining('none that is known (cpu, h100') as unknown } } });
    expect(await deploy({ gpu_type: 'l4', mig_profile: '1g.10gb' })).toMatchObject({ status: 400, body: { error: { param: 'hardware.mig_profile', message: expect.stringContaining('l4 cannot be split by MIG') as unknown } } });
    expect(await deploy({ gpu_type: 'a100', mig_profile: '3g.40gb', gpu_count: 2 })).toMatchObject({ status: 400, body: { error: { param: 'hardware.mig_profile' } } });
  });

  test('one that may be given reaches the registry with its rules', async () => {
    world.commands.serve(registerModelVersion, async () => ({ kind: 'ok' as const, value: { modelVersionId: 'mv_1', status: 'registered' as const } }));
    const asked: unknown[] = [];
    world.commands.serve(deployEndpoint, async ({ rules }) => {
      asked.push(rules);
      return { kind: 'ok', value: { endpointId: 'ep_9', created: true, sequence: 0 } };
    });
    await deploy({ gpu_type: 'a100', mig_profile: '3g.40gb', allow_spot: true });
    await deploy({ gpu_type: 'h100', gpu_compute_percent: 25 });
    await deploy({});
    expect(asked).toMatchObject([{ migProfile: '3g.40gb', allowsSpot: true, computeMilli: null }, { computeMilli: 250, nodes: 1 }, null]);
  });
});
