import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { admitRequest, promptNews, retireEndpoint, type AdapterReport } from '@penstock/contract-commands';
import { usageRecordsOf } from '@penstock/domain-usage';
import { eventually } from '@penstock/testing-kit';
import { startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeAll(async () => {
  // No router answers, so the gateway chooses by itself.
  world = await startWorld({ engines: 2, settings: { ROUTER_SILENCE_MS_MAX: '1' } });
  await setAdapters('sql', 'support', 'late');
  await eventually(models, (listed) => listed.length === 4);
});
afterAll(() => world.close());

interface Model {
  readonly id: string;
  readonly parent?: string;
}

async function models(key = world.key): Promise<Model[]> {
  const answer = (await (await world.fetch('/v1/models', { key })).json()) as { data: Model[] };
  return answer.data.map(({ id, parent }) => ({ id, ...(parent === undefined ? {} : { parent }) }));
}

async function setAdapters(...names: readonly string[]): Promise<void> {
  await world.append('registry', 'endpoint', 'ep_1', { type: 'endpoint.adapters-set.v1', data: { endpointId: 'ep_1', adapters: names.map((name) => ({ name, source: null })) } });
}

function report(replicaId: string, served: string[] | null, active: string[] = [], slots = 1): void {
  const body: AdapterReport = { replicaId, endpointId: 'ep_1', sentAtMs: Date.now(), served, active, slots };
  world.signals.publish(`tele.adapters.${replicaId}`, body);
}

/** Where a request went, and what the engine and the client were told the model is. */
async function ask(model: string): Promise<{ readonly status: number; readonly engine: number; readonly asked: unknown; readonly answered: unknown }> {
  const before = world.engines.map((engine) => engine.requests.length);
  const response = await world.chat({ model });
  const { model: answered } = (await response.json()) as { model?: string };
  const engine = world.engines.findIndex(({ requests }, index) => requests.length > (before[index] ?? 0));
  return { status: response.status, engine, asked: world.engines[engine]?.requests.at(-1)?.body['model'], answered };
}

const keyFor = async (names: readonly string[]): Promise<string> => {
  const created = (await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'narrow', models: names }) })).json()) as { key: string };
  return created.key;
};

describe('adapters of an endpoint', () => {
  test('are models of their own that name their parent', async () => {
    expect(await models()).toEqual([{ id: 'public-model' }, ...['sql', 'support', 'late'].map((name) => ({ id: `public-model:${name}`, parent: 'public-model' }))]);
    expect(await (await world.fetch('/v1/models/public-model:sql', { key: world.key })).json()).toMatchObject({ id: 'public-model:sql', object: 'model', parent: 'public-model' });
  });

  test('are not deleted by themselves, nor their base by their name', async () => {
    const answer = await world.fetch('/v1/models/public-model:sql', { method: 'DELETE' });
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'unsupported_operation', param: 'model' } }]);
    expect(world.commands.sent.filter(({ subject }) => subject === retireEndpoint.subject)).toEqual([]);
  });

  test('the engine is asked for the adapter, the client and the bill read the public name', async () => {
    const before = world.log.all('EV_USAGE').flatMap(usageRecordsOf).length;
    expect(await ask('public-model:sql')).toMatchObject({ status: 200, asked: 'sql', answered: 'public-model:sql' });
    expect(await ask('public-model')).toMatchObject({ status: 200, asked: 'inner-model', answered: 'public-model' });
    expect((await world.usage(before + 2)).slice(before).map(({ modelName, endpointId }) => [modelName, endpointId])).toEqual([['public-model:sql', 'ep_1'], ['public-model', 'ep_1']]);
    const completed = await world.fetch('/v1/tokenize', { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model:sql', prompt: 'x' }) });
    await completed.text();
    expect(world.engines.flatMap(({ requests }) => requests).find(({ path }) => path === '/tokenize')?.body['model']).toBe('sql');
  });

  test('one that is not there is told from those that are, as far as the key may call them', async () => {
    const refusal = async (model: string, key = world.key) => ((await (await world.fetch('/v1/chat/completions', { method: 'POST', key, body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }) })).json()) as { error: { code: string; message: string } }).error;
    expect(await refusal('public-model:other')).toMatchObject({ code: 'model_not_found', message: 'The model `public-model:other` does not exist or you do not have access to it. Adapters of `public-model` are `public-model:sql`, `public-model:support`, `public-model:late`.' });
    const key = await keyFor(['public-model:support']);
    await eventually(() => models(key), (listed) => listed.length === 1);
    expect((await refusal('public-model:sql', key)).message).toBe('The model `public-model:sql` does not exist or you do not have access to it. Adapters of `public-model` are `public-model:support`.');
    expect((await refusal('public-model', key)).code).toBe('model_not_found');
    const baseOnly = await keyFor(['public-model']);
    expect((await refusal('public-model:sql', baseOnly)).message).toBe('The model `public-model:sql` does not exist or you do not have access to it.');
  });

  test('an engine\'s words of its adapter become the public name', async () => {
    const [first, second] = world.engines;
    for (const engine of [first, second]) if (engine !== undefined) engine.behaviours = [({ response }) => void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"The model `sql` on inner-model has no template.","type":"BadRequestError","param":null,"code":400}}'), ...engine.behaviours.slice(-1)];
    const response = await world.chat({ model: 'public-model:sql' });
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain('`public-model:sql` on public-model has');
    for (const engine of world.engines) engine.behaviours = engine.behaviours.slice(-1);
  });
});

describe('the choice of a replica by its adapters', () => {
  test('requests of an adapter go where it is on the accelerator, and never where it is not served', async () => {
    report('rep_0', ['sql', 'support'], ['support']);
    report('rep_1', ['sql', 'support', 'late'], ['sql']);
    for (let turn = 0; turn < 4; turn += 1) expect([(await ask('public-model:sql')).engine, (await ask('public-model:support')).engine]).toEqual([1, 0]);
    report('rep_0', ['support'], ['support']);
    for (let turn = 0; turn < 4; turn += 1) expect((await ask('public-model:late')).engine).toBe(1);
    const spread = new Set<number>();
    for (let turn = 0; turn < 4; turn += 1) spread.add((await ask('public-model')).engine);
    expect(spread.size).toBe(2);
  });

  test('what was sent counts at once: two adapters share two replicas without a word of the engines', async () => {
    for (const replicaId of ['rep_0', 'rep_1']) report(replicaId, ['sql', 'support', 'late']);
    const places = new Map<string, Set<number>>();
    for (let turn = 0; turn < 5; turn += 1) {
      for (const name of ['sql', 'late']) places.set(name, (places.get(name) ?? new Set()).add((await ask(`public-model:${name}`)).engine));
    }
    expect([...places.values()].map(({ size }) => size)).toEqual([1, 1]);
    expect(places.get('sql')).not.toEqual(places.get('late'));
  });

  test('one that no replica serves is refused, whether somebody queues or not', async () => {
    for (const replicaId of ['rep_0', 'rep_1']) report(replicaId, ['sql', 'support']);
    const response = await world.chat({ model: 'public-model:late' });
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([503, 'model_loading']);
  });

  test('the same prompt under two adapters has no key in common', async () => {
    const keysOf = async (model: string): Promise<readonly number[]> => {
      const before = world.signals.published.length;
      await world.chat({ model, messages: [{ role: 'user', content: 'You know everything about tides. '.repeat(100) }] });
      const told = await eventually(() => world.signals.published.slice(before).filter(({ subject }) => subject.startsWith('tele.prompts.')), (news) => news.length > 0);
      return told.flatMap(({ data }) => promptNews.parse(data).endpoints.flatMap(({ replicas }) => replicas.flatMap(({ prompts }) => prompts.flat())));
    };
    const keys = [await keysOf('public-model:sql'), await keysOf('public-model:support'), await keysOf('public-model')];
    expect(keys.every(({ length }) => length > 0)).toBe(true);
    expect(new Set(keys.flat()).size).toBe(keys.reduce((sum, { length }) => sum + length, 0));
  });

  test('a router is told the adapter', async () => {
    const asked: unknown[] = [];
    const routed = await startWorld({ engines: 1 });
    try {
      await routed.append('registry', 'endpoint', 'ep_1', { type: 'endpoint.adapters-set.v1', data: { endpointId: 'ep_1', adapters: [{ name: 'sql', source: null }] } });
      routed.commands.serve(admitRequest, ({ adapter, modelName }) => {
        asked.push([modelName, adapter]);
        return { kind: 'refused', refusal: { code: 'no_capacity', message: 'Nothing is there.', retryAfterMs: 1_000 } };
      });
      await eventually(() => routed.chat({ model: 'public-model:sql' }), ({ status }) => status !== 404);
      await routed.chat({});
      expect(asked).toEqual([['public-model:sql', 'sql'], ['public-model', undefined]]);
    } finally {
      await routed.close();
    }
  });
});
