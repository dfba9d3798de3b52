import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deployEndpoint, registerModelVersion } from '@penstock/contract-commands';
import { ArtifactInspectionError, endpointRef, findEndpointByName, type ArtifactInspector, type CatalogQueries, type InspectedArtifact } from '@penstock/domain-catalog';
import { followProjection, silentLogger, type Causation } from '@penstock/kernel';
import { eventually, FixedClock, LocalCommandClient, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds } from '@penstock/testing-kit';
import { INSPECTION_TRIES_MAX } from './inspection-reactor.js';
import { registryConfig } from './registry-config.js';
import type { RegistryPorts } from './registry-ports.js';
import { runCatalog, type RunningCatalog } from './run-catalog.js';

const causation: Causation = { correlationId: 'req_1', causationId: 'req_1' };
const config = registryConfig.parse({});

const inspected: InspectedArtifact = {
  source: { kind: 'directory', path: '/models/a.gguf' },
  artifacts: [{ path: 'a.gguf', bytes: 1_000, digest: `sha256:${'a'.repeat(64)}` }],
  header: { format: 'gguf', architecture: 'llama', parameters: 10, precision: 'Q4_1', layers: 2, contextTokensMax: 2_048, kvBytesPerToken: 64, weightBytes: 900, license: 'apache-2.0', randomWeights: false },
};

class ScriptedInspector implements ArtifactInspector {
  calls = 0;
  constructor(private readonly answer: (call: number) => Promise<InspectedArtifact>) {}

  inspect(): Promise<InspectedArtifact> {
    this.calls += 1;
    return this.answer(this.calls);
  }
}

let log: MemoryEventLog;
let clock: FixedClock;
let timers: ManualTimers;
const ids = new SequentialIds();
let running: RunningCatalog[] = [];

beforeEach(() => {
  log = new MemoryEventLog();
  clock = new FixedClock();
  timers = new ManualTimers(clock);
});

afterEach(async () => {
  await Promise.all(running.map((instance) => instance.close()));
  running = [];
});

async function start(inspector: ArtifactInspector = new ScriptedInspector(() => Promise.resolve(inspected)), queries?: CatalogQueries): Promise<RunningCatalog> {
  const ports: RegistryPorts = {
    log, clock, ids, timers, inspector, queries, logger: silentLogger, commands: new LocalCommandClient(), signals: new MemorySignals(), projections: [],
    follow: (projection) => followProjection(log, projection),
  };
  const instance = await runCatalog(config, ports);
  running.push(instance);
  return instance;
}

const register = (instance: RunningCatalog, change: object = {}) =>
  instance.modelVersions.register(registerModelVersion.request.parse({ modelName: 'model', version: '1', engine: 'llama.cpp', source: { kind: 'directory', path: '/models/a.gguf' }, ...change }), causation);

const deploy = (instance: RunningCatalog, modelVersionId: string, change: object = {}) =>
  instance.endpoints.deploy(deployEndpoint.request.parse({
    name: 'model', modelVersionId, organisationId: null,
    hardware: { acceleratorType: null, acceleratorCount: 1 },
    scaling: { minReplicas: 1, maxReplicas: 2, scaleToZeroAfterIdleSeconds: null },
    serving: { slotsPerReplica: 4, contextTokens: 2_048, queueMax: 64, queueWaitMsMax: 30_000 },
    engineOptions: {}, ...change,
  }), causation);

function valueOf<Value>(outcome: { readonly kind: 'ok'; readonly value: Value } | { readonly kind: 'refused' }): Value {
  if (outcome.kind === 'refused') throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome.value;
}

const types = () => log.all('EV_REGISTRY').map((event) => event.type);

/** Lets the loop run until the catalogue is as `isDone` wants it. */
const settle = (instance: RunningCatalog, modelVersionId: string, status: string) =>
  eventually(async () => {
    await timers.advance(1_000);
    return instance.catalog.state().modelVersions.get(modelVersionId)?.status;
  }, (found) => found === status);

describe('registering a model version', () => {
  test('answers at once, reads the artifacts afterwards, and does both once', async () => {
    const instance = await start();
    const first = valueOf(await register(instance));
    expect(first.status).toBe('submitted');
    expect(valueOf(await register(instance)).modelVersionId).toBe(first.modelVersionId);
    await settle(instance, first.modelVersionId, 'registered');
    expect(valueOf(await register(instance)).status).toBe('registered');
    expect(types()).toEqual(['model-version.submitted.v1', 'model-version.registered.v1']);
    expect(log.all('EV_REGISTRY')[1]?.data).toMatchObject({ memory: { weightBytes: 900, kvBytesPerToken: 64, basis: 'header' }, license: 'apache-2.0', contextTokensMax: 2_048 });
    expect(log.all('EV_REGISTRY')[0]).toMatchObject({ correlationId: 'req_1', source: 'penstock/registry' });
  });

  test('an attached engine is registered without reading anything', async () => {
    const inspector = new ScriptedInspector(() => Promise.reject(new Error('must not be called')));
    const instance = await start(inspector);
    const reply = valueOf(await register(instance, { engine: 'vllm', source: { kind: 'attached', url: 'http://10.0.0.5:8000' }, declared: { contextTokensMax: 8_192 } }));
    expect(reply.status).toBe('registered');
    await timers.advance(60_000);
    expect(inspector.calls).toBe(0);
  });

  test('what cannot be read is rejected with the reason, and may be submitted again', async () => {
    const instance = await start(new ScriptedInspector((call) => (call === 1 ? Promise.reject(new ArtifactInspectionError('digest_mismatch', 'a.gguf has another sha256 than was pinned.')) : Promise.resolve(inspected))));
    const { modelVersionId } = valueOf(await register(instance));
    await settle(instance, modelVersionId, 'rejected');
    expect(instance.catalog.state().modelVersions.get(modelVersionId)?.rejection).toContain('another sha256');
    expect(await deploy(instance, modelVersionId)).toMatchObject({ kind: 'refused', refusal: { param: 'modelVersionId' } });
    await register(instance);
    await settle(instance, modelVersionId, 'registered');
  });

  test('a model of tensors is registered with them, and only for an engine that takes tensors', async () => {
    const tensors = { inputs: [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 8] }], outputs: [{ name: 'y', datatype: 'FP32' as const, shape: [-1] }] };
    const onnx: InspectedArtifact = { ...inspected, header: { ...inspected.header, format: 'onnx', kvBytesPerToken: 0, contextTokensMax: null, tensors } };
    const instance = await start(new ScriptedInspector(() => Promise.resolve(onnx)));
    const fit = valueOf(await register(instance, { engine: 'onnx' }));
    const misfit = valueOf(await register(instance, { engine: 'llama.cpp', version: '2' }));
    const versions = () => instance.catalog.state().modelVersions;
    await settle(instance, fit.modelVersionId, 'registered');
    await settle(instance, misfit.modelVersionId, 'rejected');
    await eventually(() => versions().get(fit.modelVersionId)?.tensors, (found) => found !== null);
    expect(versions().get(misfit.modelVersionId)?.rejection).toContain('Choose the engine onnx or triton');
    expect(versions().get(fit.modelVersionId)).toMatchObject({ status: 'registered', tensors, registered: { format: 'onnx', capabilities: ['infer'], memory: { kvBytesPerToken: 0 } } });
    expect(types()).toContain('model-version.tensors-read.v1');
  });

  test('adapters come with a deployment, may change with the next one, and have to suit the engine', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance, { engine: 'engine-sim', source: { kind: 'none' } }));
    const adapters = [{ name: 'sql', source: null }];
    const { endpointId } = valueOf(await deploy(instance, modelVersionId, { adapters }));
    const known = () => instance.catalog.state().endpoints.get(endpointId)?.adapters;
    await eventually(known, (found) => found?.length === 1);
    expect(valueOf(await deploy(instance, modelVersionId)).created).toBe(false);
    expect(await deploy(instance, modelVersionId, { adapters: [{ name: 'sql', source: { kind: 'directory', path: '/loras/sql' } }] })).toMatchObject({ kind: 'refused', refusal: { param: 'adapters' } });
    await deploy(instance, modelVersionId, { adapters: [...adapters, { name: 'support', source: null }] });
    await eventually(known, (found) => found?.length === 2);
    expect(await deploy(instance, modelVersionId, { name: 'model:sql' })).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists', param: 'name' } });
    expect(types().filter((type) => type === 'endpoint.adapters-set.v1')).toHaveLength(2);
  });

  test('an unexpected failure is tried again a few times, then told', async () => {
    const inspector = new ScriptedInspector(() => Promise.reject(new Error('too many open files')));
    const instance = await start(inspector);
    const { modelVersionId } = valueOf(await register(instance));
    await settle(instance, modelVersionId, 'rejected');
    expect(inspector.calls).toBe(INSPECTION_TRIES_MAX);
  });

  test('a reading that was cut off by a stop is done by the next start', async () => {
    const inspector = new ScriptedInspector(() => new Promise(() => undefined));
    const stuck = await start(inspector);
    const { modelVersionId } = valueOf(await register(stuck));
    const passing = timers.advance(100);
    await eventually(() => inspector.calls, (calls) => calls === 1);
    await stuck.close();
    await passing;
    const next = await start();
    await settle(next, modelVersionId, 'registered');
  });

  test('two instances read, one word counts', async () => {
    const one = await start();
    const two = await start();
    const { modelVersionId } = valueOf(await register(one));
    await Promise.all([settle(one, modelVersionId, 'registered'), settle(two, modelVersionId, 'registered')]);
    await timers.advance(60_000);
    expect(types().filter((type) => type === 'model-version.registered.v1')).toHaveLength(1);
  });
});

describe('deploying an endpoint', () => {
  test('may follow the registration at once, and the same again is a no-op', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance));
    const first = valueOf(await deploy(instance, modelVersionId));
    expect(first).toMatchObject({ created: true, sequence: 2 });
    expect(valueOf(await deploy(instance, modelVersionId))).toEqual({ ...first, created: false });
    expect(log.all('EV_REGISTRY').at(-1)?.data).toMatchObject({ engine: 'llama.cpp', endpointId: first.endpointId });
  });

  test('another setting under the same name is refused and named', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance));
    await deploy(instance, modelVersionId);
    expect(await deploy(instance, modelVersionId, { scaling: { minReplicas: 1, maxReplicas: 5, scaleToZeroAfterIdleSeconds: null } })).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists', param: 'scaling.maxReplicas' } });
  });

  test('bad settings and unknown versions name the field', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance));
    await settle(instance, modelVersionId, 'registered');
    expect(await deploy(instance, 'mv_unknown')).toMatchObject({ kind: 'refused', refusal: { code: 'not_found', param: 'modelVersionId' } });
    expect(await deploy(instance, modelVersionId, { scaling: { minReplicas: 3, maxReplicas: 2, scaleToZeroAfterIdleSeconds: null } })).toMatchObject({ kind: 'refused', refusal: { param: 'scaling.minReplicas' } });
    expect(await deploy(instance, modelVersionId, { serving: { slotsPerReplica: 4, contextTokens: 9_999, queueMax: 64, queueWaitMsMax: 30_000 } })).toMatchObject({ kind: 'refused', refusal: { param: 'serving.contextTokens' } });
  });

  test('a name that was retired is deployed as a new endpoint', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance));
    const first = valueOf(await deploy(instance, modelVersionId));
    await instance.endpoints.retire({ endpointId: first.endpointId, reason: 'gone' }, causation);
    const second = valueOf(await deploy(instance, modelVersionId));
    expect(second).toMatchObject({ created: true });
    expect(second.endpointId).not.toBe(first.endpointId);
    await instance.catalog.waitFor('EV_REGISTRY', second.sequence);
    expect(findEndpointByName(instance.catalog.state(), 'model', null)?.endpointId).toBe(second.endpointId);
    expect(await instance.endpoints.retire({ endpointId: 'ep_unknown', reason: 'gone' }, causation)).toMatchObject({ kind: 'refused', refusal: { code: 'endpoint_not_found' } });
  });

  test('many deploys of one name at once, on two instances, make one endpoint', async () => {
    const instances = [await start(), await start()];
    const { modelVersionId } = valueOf(await register(instances[0] as RunningCatalog));
    const replies = await Promise.all(Array.from({ length: 20 }, (_, index) => deploy(instances[index % 2] as RunningCatalog, modelVersionId)));
    const values = replies.map(valueOf);
    expect(new Set(values.map((value) => value.endpointId)).size).toBe(1);
    expect(values.filter((value) => value.created)).toHaveLength(1);
    expect(await log.load(endpointRef(values[0]?.endpointId ?? ''))).toHaveLength(1);
  });

  test('two organisations may use one name; a shared name cannot be taken by one of them', async () => {
    const instance = await start();
    const { modelVersionId } = valueOf(await register(instance));
    const own = valueOf(await deploy(instance, modelVersionId, { organisationId: 'org_a' }));
    const other = valueOf(await deploy(instance, modelVersionId, { organisationId: 'org_b' }));
    expect(own.endpointId).not.toBe(other.endpointId);
    const shared = valueOf(await deploy(instance, modelVersionId));
    await instance.catalog.waitFor('EV_REGISTRY', shared.sequence);
    expect(await deploy(instance, modelVersionId, { organisationId: 'org_c' })).toMatchObject({ kind: 'refused', refusal: { code: 'already_exists', param: 'name' } });
    expect(valueOf(await deploy(instance, modelVersionId, { organisationId: 'org_a' }))).toMatchObject({ created: false });
  });
});

describe('lists', () => {
  test('come from the database, and from memory while it is down', async () => {
    let isUp = true;
    const queries: CatalogQueries = {
      modelVersions: () => (isUp ? Promise.resolve([]) : Promise.reject(new Error('connection refused'))),
      endpoints: () => (isUp ? Promise.resolve([]) : Promise.reject(new Error('connection refused'))),
    };
    const instance = await start(undefined, queries);
    const { modelVersionId } = valueOf(await register(instance));
    const { sequence, endpointId } = valueOf(await deploy(instance, modelVersionId));
    await instance.catalog.waitFor('EV_REGISTRY', sequence);
    expect(await instance.reader.endpoints({ includeRetired: false, limit: 10 })).toEqual([]);
    isUp = false;
    expect((await instance.reader.endpoints({ includeRetired: false, limit: 10 })).map((view) => view.endpointId)).toEqual([endpointId]);
    expect((await instance.reader.modelVersions({ limit: 10 })).map((view) => view.modelVersionId)).toEqual([modelVersionId]);
    expect(await instance.reader.modelVersions({ modelName: 'other', limit: 10 })).toEqual([]);
  });
});

describe('traffic splits', () => {
  const target = (endpoint: string, weight: number) => ({ endpoint, weight });
  const request = (targets: { endpoint: string; weight: number }[]) => ({ name: 'assistant', organisationId: null, targets, sticky: 'user' as const, reason: 'canary' });

  test('a name is spread over endpoints, replaced and taken away', async () => {
    const instance = await start();
    const registered = await register(instance);
    if (registered.kind !== 'ok') throw new Error('not registered');
    const deployed = await Promise.all(['one', 'two'].map((name) => deploy(instance, registered.value.modelVersionId, { name })));
    const sequences = deployed.map((outcome) => (outcome.kind === 'ok' ? outcome.value.sequence : 0));
    await instance.catalog.waitFor('EV_REGISTRY', Math.max(...sequences));
    const set = await instance.traffic.set(request([target('one', 9), target('two', 1)]), causation);
    const again = await instance.traffic.set(request([target('one', 9), target('two', 1)]), causation);
    if (set.kind !== 'ok' || again.kind !== 'ok') throw new Error('not set');
    expect(again.value.splitId).toBe(set.value.splitId);
    await instance.catalog.waitFor('EV_REGISTRY', set.value.sequence);
    expect(instance.catalog.state().splits.get(set.value.splitId)?.targets.map(({ weight }) => weight)).toEqual([9, 1]);
    const removed = await instance.traffic.remove({ splitId: set.value.splitId, reason: 'done' }, causation);
    if (removed.kind !== 'ok') throw new Error('not removed');
    await instance.catalog.waitFor('EV_REGISTRY', removed.value.sequence);
    expect(instance.catalog.state().splits.size).toBe(0);
  });

  test('what is no endpoint is refused with its field', async () => {
    const instance = await start();
    expect(await instance.traffic.set(request([target('nobody', 1)]), causation)).toMatchObject({ kind: 'refused', refusal: { param: 'targets[0].endpoint' } });
    expect(await instance.traffic.remove({ splitId: 'split_9', reason: '' }, causation)).toMatchObject({ kind: 'refused', refusal: { code: 'not_found' } });
  });
});
