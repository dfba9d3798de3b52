import { describe, expect, test } from '@jest/globals';
import { endpointDeployedV1, trafficSplitSetV1, type EndpointAdapter, type EndpointDeployedV1, type TrafficSplitSetV1 } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import { given } from '@penstock/testing-kit';
import fc from 'fast-check';
import { adapterModelName, adapterProblem, adapterSlotsOf, hiddenAdapter, splitAdapterName } from './adapters.js';
import { catalogProjection } from './catalog-projection.js';
import type { CatalogState, ModelVersionState } from './catalog-state.js';
import { chooseEndpoint } from './choose-endpoint.js';
import { endpointDecider, type EndpointEvent } from './endpoint.js';
import { endpointRef } from './refs.js';

const example = endpointDeployedV1.example as EndpointDeployedV1;
const named = (...names: readonly string[]): EndpointAdapter[] => names.map((name) => ({ name, source: null }));
const deploy = (endpointId: string, name: string, organisationId: string | null = null) => ({ type: 'endpoint.deployed.v1', data: { ...example, endpointId, name, organisationId } });
const adapt = (endpointId: string, ...names: readonly string[]) => ({ type: 'endpoint.adapters-set.v1', data: { endpointId, adapters: named(...names) } });

function project(...events: readonly { readonly type: string; readonly data: unknown }[]): CatalogState {
  const recorded = events.map((event, index): RecordedEvent => ({
    ...event, id: `e.${index}`, source: 'test', time: new Date(1_000 * (index + 1)).toISOString(), ref: endpointRef('any'), stream: 'EV_REGISTRY', sequence: index + 1, correlationId: 'c', causationId: 'c',
  }));
  const state = recorded.reduce((folded, event) => catalogProjection.apply(folded, event), catalogProjection.initialState());
  return catalogProjection.restore(JSON.parse(JSON.stringify(catalogProjection.snapshot(state))));
}

const choose = (state: CatalogState, name: string, user = 'anna', organisationId: string | null = 'org_1') => chooseEndpoint(state, name, { organisationId, requestId: 'req_1', user });

describe('a model name of an adapter', () => {
  test('leads to its endpoint, and is what the answer is called', () => {
    const state = project(deploy('ep_1', 'llama'), adapt('ep_1', 'sql', 'support'));
    expect(choose(state, 'llama:sql')).toMatchObject({ endpointId: 'ep_1', name: 'llama:sql', adapter: 'sql' });
    expect(choose(state, 'llama')).toMatchObject({ endpointId: 'ep_1', name: 'llama' });
    expect(choose(state, 'llama')).not.toHaveProperty('adapter');
    for (const unknown of ['llama:other', 'llama:', ':sql', 'sql', 'other:sql']) expect(choose(state, unknown)).toBeUndefined();
    expect(choose(project(deploy('ep_1', 'llama'), adapt('ep_1', 'sql'), adapt('ep_1')), 'llama:sql')).toBeUndefined();
  });

  test('is hidden by a model that is called so itself, and a tenant reaches its own', () => {
    const state = project(deploy('ep_1', 'llama'), adapt('ep_1', 'sql'), deploy('ep_2', 'llama:sql'), deploy('ep_3', 'own', 'org_2'), adapt('ep_3', 'sql'));
    expect(choose(state, 'llama:sql')).toMatchObject({ endpointId: 'ep_2' });
    expect(choose(state, 'own:sql')).toBeUndefined();
    expect(choose(state, 'own:sql', 'anna', 'org_2')).toMatchObject({ endpointId: 'ep_3', adapter: 'sql' });
  });

  test('under a traffic split goes to the targets that have it', () => {
    const targets = [{ endpointId: 'ep_1', weight: 50 }, { endpointId: 'ep_2', weight: 50 }, { endpointId: 'ep_3', weight: 0 }];
    const split = { type: 'traffic-split.set.v1', data: { ...(trafficSplitSetV1.example as TrafficSplitSetV1), name: 'chat', organisationId: null, targets } };
    const state = project(deploy('ep_1', 'llama-a'), deploy('ep_2', 'llama-b'), deploy('ep_3', 'llama-c'), adapt('ep_1', 'old'), adapt('ep_2', 'old', 'new'), adapt('ep_3', 'off'), split);
    const users = Array.from({ length: 40 }, (_, index) => `user_${index}`);
    expect(new Set(users.map((user) => choose(state, 'chat:new', user)?.endpointId))).toEqual(new Set(['ep_2']));
    expect(new Set(users.map((user) => choose(state, 'chat:old', user)?.endpointId))).toEqual(new Set(['ep_1', 'ep_2']));
    expect(choose(state, 'chat:new')).toMatchObject({ name: 'chat:new', adapter: 'new' });
    expect(choose(state, 'chat:off')).toBeUndefined();
  });

  test('property: every adapter is found by its name, and by no other', () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9._-]{0,8}$/);
    const endpointName = fc.array(word, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(':'));
    fc.assert(fc.property(fc.uniqueArray(fc.tuple(endpointName, fc.uniqueArray(word, { maxLength: 3 })), { selector: ([name]) => name, maxLength: 4 }), (endpoints) => {
      const state = project(...endpoints.flatMap(([name, adapters], index) => [deploy(`ep_${index}`, name), adapt(`ep_${index}`, ...adapters)]));
      const plain = new Set(endpoints.map(([name]) => name));
      for (const [index, [name, adapters]] of endpoints.entries()) {
        expect(choose(state, name)).toMatchObject({ endpointId: `ep_${index}`, name });
        for (const adapter of adapters) {
          const called = adapterModelName(name, adapter);
          expect(splitAdapterName(called)).toEqual({ base: name, adapter });
          if (!plain.has(called)) expect(choose(state, called)).toMatchObject({ endpointId: `ep_${index}`, name: called, adapter });
        }
        expect(choose(state, `${name}:never0`)).toBeUndefined();
      }
    }));
  });
});

describe('adapters of an endpoint', () => {
  test('are set with a deployment and replaced by another; saying nothing leaves them', () => {
    const deployed: EndpointEvent = { type: 'endpoint.deployed.v1', data: example };
    const set = (...names: readonly string[]): EndpointEvent => ({ type: 'endpoint.adapters-set.v1', data: { endpointId: 'ep_01', adapters: named(...names) } });
    given(endpointDecider).when({ kind: 'deploy', data: example, adapters: named('sql') }).then(deployed, set('sql'));
    given(endpointDecider).when({ kind: 'deploy', data: example, adapters: [] }).then(deployed);
    given(endpointDecider, deployed, set('sql')).when({ kind: 'deploy', data: example, adapters: named('sql') }).then();
    given(endpointDecider, deployed, set('sql')).when({ kind: 'deploy', data: example }).then();
    given(endpointDecider, deployed, set('sql')).when({ kind: 'deploy', data: example, adapters: named('sql', 'support') }).then(set('sql', 'support'));
    given(endpointDecider, deployed, set('sql')).when({ kind: 'deploy', data: example, adapters: [] }).then(set());
  });

  const vllm: Pick<ModelVersionState, 'engine' | 'source'> = { engine: 'vllm', source: { kind: 'hugging-face', repository: 'owner/llama', revision: 'main', files: [] } };
  const attached: typeof vllm = { engine: 'vllm', source: { kind: 'attached', url: 'http://127.0.0.1:8000' } };
  const hub = (name: string, revision = 'main', files: string[] = []): EndpointAdapter => ({ name, source: { kind: 'hugging-face', repository: 'owner/lora', revision, files } });
  const state = project(deploy('ep_1', 'llama'), deploy('ep_2', 'llama:taken'));
  const problem = (adapters: readonly EndpointAdapter[], version = vllm, name = 'llama') => adapterProblem({ name, organisationId: null, adapters }, version, state);

  test('fit the engine that is to serve them', () => {
    expect(problem([hub('sql')])).toBeUndefined();
    expect(problem(named('sql'), attached)).toBeUndefined();
    expect(problem([...named('sql'), { name: 'sim', source: { kind: 'none' } }], { engine: 'engine-sim', source: { kind: 'none' } })).toBeUndefined();
    expect(problem([], { engine: 'llama.cpp', source: { kind: 'directory', path: '/m' } })).toBeUndefined();
  });

  test.each([
    ['an engine that cannot', [hub('sql')], { ...vllm, engine: 'llama.cpp' as const }, /llama\.cpp tells its adapters apart by their number/],
    ['tensors', named('sql'), { ...vllm, engine: 'onnx' as const }, /has no adapters/],
    ['a name twice', [hub('sql'), hub('sql')], vllm, /named twice/],
    ['a name of another model', [hub('taken')], vllm, /llama:taken is a model of its own/],
    ['an address for an engine that runs', [hub('sql')], attached, /without an address/],
    ['weights for the simulated engine', [hub('sql')], { engine: 'engine-sim' as const, source: { kind: 'none' as const } }, /sim:\/\//],
    ['nothing to fetch', named('sql'), vllm, /hf:\/\/owner\/repository/],
    ['a revision', [hub('sql', 'abc')], vllm, /newest revision/],
    ['a single file', [hub('sql', 'main', ['a.safetensors'])], vllm, /hf:\/\/owner\/repository/],
  ])('are refused with the next step: %s', (_, adapters, version, message) => {
    expect(problem(adapters, version)).toMatchObject({ param: 'adapters', message: expect.stringMatching(message) });
  });

  test('have names that are models\' names, and that no new endpoint hides', () => {
    expect(problem([hub('a'.repeat(100))], vllm, 'm'.repeat(150))?.message).toMatch(/longer than a model's name/);
    const adapted = project(deploy('ep_1', 'llama'), adapt('ep_1', 'sql'));
    expect(hiddenAdapter(adapted, 'llama:sql', null)).toBe('llama');
    expect(hiddenAdapter(adapted, 'llama:other', null)).toBeUndefined();
    expect(hiddenAdapter(adapted, 'llama', null)).toBeUndefined();
  });

  test('are held as many at once as the endpoint says, else a few', () => {
    expect([adapterSlotsOf(2, {}), adapterSlotsOf(200, {}), adapterSlotsOf(2, { max_loras: 8 }), adapterSlotsOf(2, { max_loras: 0 })]).toEqual([2, 4, 8, 2]);
  });
});
