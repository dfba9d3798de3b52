import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { removeTrafficSplit, retireEndpoint, setTrafficSplit } from '@penstock/contract-commands';
import { trafficSplitBody, trafficSplitList } from '@penstock/contract-http';
import { ADMIN_KEY, deploy, startWorld, type World } from './gateway-world-suite.js';

let world: World;

/** Stores an event of the registry's and returns its place in the log. */
async function store(type: string, data: object): Promise<number> {
  await world.append('registry', 'traffic-split', 'split_1', { type, data });
  return world.log.all('EV_REGISTRY').at(-1)?.sequence ?? 0;
}

beforeAll(async () => {
  world = await startWorld();
  await deploy(world.append, 'ep_2', 'assistant-v2', null);
  world.commands.serve(setTrafficSplit, async ({ name, organisationId, sticky, reason, targets }) => {
    if (targets.some(({ endpoint }) => endpoint === 'nobody')) return { kind: 'refused', refusal: { code: 'endpoint_not_found', message: 'There is no such endpoint.', param: 'targets[0].endpoint' } };
    const data = { splitId: 'split_1', name, organisationId, sticky, reason, targets: targets.map(({ endpoint, weight }) => ({ endpointId: endpoint, weight })) };
    return { kind: 'ok', value: { splitId: 'split_1', sequence: await store('traffic-split.set.v1', data) } };
  });
  world.commands.serve(removeTrafficSplit, async ({ splitId, reason }) => ({ kind: 'ok', value: { splitId, sequence: await store('traffic-split.removed.v1', { splitId, reason }) } }));
});
afterAll(() => world.close());

const admin = (path: string, init: RequestInit = {}) => world.fetch(path, { ...init, key: ADMIN_KEY });
const set = (body: object) => admin('/admin/v1/traffic-splits', { method: 'POST', body: JSON.stringify(body) });

describe('a model', () => {
  test('is deleted by whoever may retire its endpoint, and a name that several share is not', async () => {
    const retired: string[] = [];
    world.commands.serve(retireEndpoint, ({ endpointId }) => {
      retired.push(endpointId);
      return { kind: 'ok', value: { endpointId } };
    });
    await deploy(world.append, 'ep_slash', 'meta/llama', null);
    expect(await (await admin('/v1/models/meta%2Fllama', { method: 'DELETE' })).json()).toEqual({ id: 'meta/llama', object: 'model', deleted: true });
    expect((await world.fetch('/v1/models/meta/llama', { method: 'DELETE', key: world.key })).status).toBe(403);
    expect((await admin('/v1/models/nope', { method: 'DELETE' })).status).toBe(404);
    await set({ model: 'shared', targets: [{ endpoint: 'ep_1', weight: 1 }], reason: 'x' });
    expect(await (await admin('/v1/models/shared', { method: 'DELETE' })).json()).toMatchObject({ error: { code: 'unsupported_operation', param: 'model', message: expect.stringContaining('/admin/v1/traffic-splits/split_1') } });
    await admin('/admin/v1/traffic-splits/split_1', { method: 'DELETE' });
    expect(retired).toEqual(['ep_slash']);
  });
});

describe('traffic splits', () => {
  test('are set, listed and removed; a name of one is a model like any other', async () => {
    const answer = await set({ model: 'assistant', targets: [{ endpoint: 'ep_1', weight: 9 }, { endpoint: 'ep_2', weight: 1 }], reason: 'canary' });
    expect(answer.status).toBe(200);
    const split = trafficSplitBody.parse(await answer.json());
    expect(split).toMatchObject({ id: 'split_1', model: 'assistant', sticky: 'user', targets: [{ endpoint_id: 'ep_1', share: 0.9 }, { endpoint: 'assistant-v2', share: 0.1 }] });
    expect(trafficSplitList.parse(await (await admin('/admin/v1/traffic-splits')).json()).data).toEqual([split]);
    const models = await (await world.fetch('/v1/models', { key: world.key })).json() as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toContain('assistant');
    expect((await admin('/admin/v1/traffic-splits/split_1', { method: 'DELETE' })).status).toBe(200);
    expect(trafficSplitList.parse(await (await admin('/admin/v1/traffic-splits')).json()).data).toEqual([]);
  });

  test('requests go to the endpoints by weight, usage says which, and the client sees the name it called', async () => {
    await set({ model: 'assistant', targets: [{ endpoint: 'ep_1', weight: 1 }, { endpoint: 'ep_2', weight: 0 }] });
    const answer = await world.chat({ model: 'assistant', user: 'anna' });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ model: 'assistant' });
    const [usage] = await world.usage(1);
    expect(usage).toMatchObject({ modelName: 'assistant', endpointId: 'ep_1', modelVersionId: 'mv_1' });
  });

  test('bad input is refused with its field', async () => {
    const refusedWith = async (body: object) => (await (await set(body)).json()) as { code: string; param: string };
    expect(await refusedWith({ model: 'assistant', targets: [] })).toMatchObject({ param: 'targets' });
    expect(await refusedWith({ model: 'assistant', targets: [{ endpoint: 'ep_1', weight: -1 }] })).toMatchObject({ param: 'targets[0].weight' });
    expect(await refusedWith({ model: 'assistant', targets: [{ endpoint: 'ep_1', weight: 1 }], sticky: 'moon' })).toMatchObject({ param: 'sticky' });
    expect(await refusedWith({ model: 'assistant', targets: [{ endpoint: 'nobody', weight: 1 }] })).toMatchObject({ code: 'endpoint_not_found', param: 'targets[0].endpoint' });
    expect((await admin('/admin/v1/traffic-splits/split_9', { method: 'DELETE' })).status).toBe(404);
  });
});
