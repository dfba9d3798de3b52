import { endpointLoad, listScalingDecisions, wakeEndpoint } from '@penstock/contract-commands';
import { endpointDeployedV1, replicaPlacedV2, replicaReadyV1, type CatalogueEvent, type EndpointDeployedV1, type WantedReplicasChangedV1 } from '@penstock/contract-events';
import { LOW_LOAD_WINDOW_MS } from '@penstock/domain-scaling';
import { followProjection, silentLogger, type AggregateRef, type Projection } from '@penstock/kernel';
import { FixedClock, LocalCommandClient, localCommandTransport, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds } from '@penstock/testing-kit';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { autoscalerConfig } from './config.js';
import type { AutoscalerPorts } from './ports.js';
import { startAutoscaler } from './start-autoscaler.js';

const STEP_MS = 50;
const TURNS = 4;

class World {
  readonly clock = new FixedClock();
  readonly timers = new ManualTimers(this.clock);
  readonly log = new MemoryEventLog();
  readonly ids = new SequentialIds();
  readonly commands = new LocalCommandClient();
  readonly signals = new MemorySignals();
  private readonly closers: (() => Promise<void>)[] = [];

  async start(overrides: Partial<AutoscalerPorts> = {}) {
    const { clock, timers, log, ids, commands, signals } = this;
    const service = await startAutoscaler(autoscalerConfig.parse({}), {
      clock, timers, log, ids, commands, signals, projections: [], logger: silentLogger,
      follow: <State>(projection: Projection<State>) => followProjection(log, projection),
      commandTransport: localCommandTransport(commands),
      ...overrides,
    });
    this.closers.push(() => service.close());
    return service;
  }

  async run(forMs: number): Promise<void> {
    for (let passed = 0; passed < forMs; passed += STEP_MS) {
      await this.timers.advance(Math.min(STEP_MS, forMs - passed));
      for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    const commandId = this.ids.next('cmd');
    await this.log.append({ ref, events: [event], expected: 'any', commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: this.clock.now() });
  }

  async deploy(endpointId: string, scaling: Partial<EndpointDeployedV1['scaling']>): Promise<void> {
    const deployed = endpointDeployedV1.schema.parse(endpointDeployedV1.example);
    const data = { ...deployed, endpointId, name: endpointId, scaling: { ...deployed.scaling, maxReplicas: 5, ...scaling } };
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.deployed.v1', data });
  }

  async ready(endpointId: string, replicaId: string): Promise<void> {
    const ref: AggregateRef = { context: 'fleet', aggregate: 'replica', id: replicaId };
    await this.append(ref, { type: 'replica.placed.v2', data: { ...replicaPlacedV2.schema.parse(replicaPlacedV2.example), replicaId, endpointId } });
    await this.append(ref, { type: 'replica.ready.v1', data: { ...replicaReadyV1.schema.parse(replicaReadyV1.example), replicaId } });
  }

  /** A router says this each second until it is stopped. */
  report(endpointId: string, load: { waiting: number; running: number; lastRequestAtMs: number | null }): () => void {
    return this.timers.every(1_000, () => this.signals.publish(`tele.endpoint.${endpointId}`, endpointLoad.parse({ endpointId, sentAtMs: this.clock.now(), ...load })));
  }

  decisions(): string[] {
    return this.log.all('EV_SCALING').map((event) => event.data as WantedReplicasChangedV1).map(({ rule, from, to }) => `${rule} ${from} -> ${to}`);
  }

  async close(): Promise<void> {
    for (const close of this.closers) await close();
  }
}

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(() => world.close());

describe('the autoscaler', () => {
  test('gives an endpoint its floor once, however many autoscalers there are', async () => {
    await world.start();
    await world.start();
    await world.deploy('ep_1', { minReplicas: 2 });
    await world.run(3_000);
    expect(world.decisions()).toEqual(['floor 0 -> 2']);
  });

  test('adds a replica for a queue that lasts, and waits for it before it adds another', async () => {
    await world.start();
    await world.deploy('ep_1', { minReplicas: 1 });
    await world.ready('ep_1', 'rep_1');
    world.report('ep_1', { waiting: 12, running: 4, lastRequestAtMs: world.clock.now() });
    await world.run(60_000);
    expect(world.decisions()).toEqual(['floor 0 -> 1', 'queue 1 -> 2']);
    await world.ready('ep_1', 'rep_2');
    await world.run(10_000);
    expect(world.decisions().at(-1)).toBe('queue 2 -> 3');
    expect((world.log.all('EV_SCALING').at(-1)?.data as WantedReplicasChangedV1).signals).toMatchObject({ waiting: 12, ready: 2, starting: 0 });
  });

  test('gives replicas up after a calm window', async () => {
    await world.start();
    await world.deploy('ep_1', { minReplicas: 1 });
    for (const replicaId of ['rep_1', 'rep_2']) await world.ready('ep_1', replicaId);
    await world.append({ context: 'scaling', aggregate: 'endpoint-scale', id: 'ep_1' }, { type: 'wanted-replicas.changed.v1', data: { endpointId: 'ep_1', from: 0, to: 2, rule: 'queue', reason: 'before', signals: {} } });
    const stop = world.report('ep_1', { waiting: 0, running: 1, lastRequestAtMs: world.clock.now() });
    await world.run(LOW_LOAD_WINDOW_MS - 10_000);
    stop();
    await world.run(30_000);
    expect(world.decisions()).toEqual(['queue 0 -> 2']);
    world.report('ep_1', { waiting: 0, running: 1, lastRequestAtMs: world.clock.now() });
    await world.run(LOW_LOAD_WINDOW_MS + 5_000);
    expect(world.decisions()).toEqual(['queue 0 -> 2', 'low-load 2 -> 1']);
  });

  test('scales to zero only on what a router says, not on silence', async () => {
    await world.start();
    await world.deploy('ep_1', { minReplicas: 1, scaleToZeroAfterIdleSeconds: 20 });
    await world.run(60_000);
    expect(world.decisions()).toEqual(['floor 0 -> 1']);
    world.report('ep_1', { waiting: 0, running: 0, lastRequestAtMs: null });
    await world.run(25_000);
    expect(world.decisions()).toEqual(['floor 0 -> 1', 'idle 1 -> 0']);
  });

  test('wakes once for many wakes at two autoscalers, also when a router only reports the queue', async () => {
    await world.start();
    const other = new LocalCommandClient();
    await world.start({ commandTransport: localCommandTransport(other) });
    for (const endpointId of ['ep_1', 'ep_2']) await world.deploy(endpointId, { minReplicas: 0, scaleToZeroAfterIdleSeconds: 20 });
    await world.run(100);
    const replies = await Promise.all(Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? world.commands : other).send(wakeEndpoint, { endpointId: 'ep_1', waiting: index + 1 })));
    expect(replies).toEqual(replies.map(() => ({ kind: 'ok', value: { wantedReplicas: 1 } })));
    world.report('ep_2', { waiting: 1, running: 0, lastRequestAtMs: world.clock.now() });
    await world.run(3_000);
    expect(world.decisions()).toEqual(['wake 0 -> 1', 'wake 0 -> 1']);
  });

  test('goes on after a restart from what the log says', async () => {
    const first = await world.start();
    await world.deploy('ep_1', { minReplicas: 2 });
    await world.run(1_000);
    await first.close();
    await world.append({ context: 'registry', aggregate: 'endpoint', id: 'ep_1' }, { type: 'endpoint.retired.v1', data: { endpointId: 'ep_1', reason: 'deleted' } });
    await world.start();
    await world.run(1_000);
    expect(world.decisions()).toEqual(['floor 0 -> 2', 'retired 2 -> 0']);
  });

  test('lists decisions, newest first, from memory while the database is down', async () => {
    await world.start({ queries: { decisions: () => Promise.reject(new Error('connection refused')) } });
    await world.deploy('ep_1', { minReplicas: 1 });
    await world.run(1_000);
    await world.deploy('ep_2', { minReplicas: 3 });
    await world.run(1_000);
    const all = await world.commands.send(listScalingDecisions, {});
    expect(all).toMatchObject({ kind: 'ok', value: { decisions: [{ endpointId: 'ep_2', to: 3 }, { endpointId: 'ep_1', to: 1, rule: 'floor' }] } });
    const one = await world.commands.send(listScalingDecisions, { endpointId: 'ep_1', limit: 1 });
    expect(one).toMatchObject({ kind: 'ok', value: { decisions: [{ endpointId: 'ep_1' }] } });
  });

  test('refuses a malformed command and an unknown endpoint', async () => {
    await world.start();
    expect(await world.commands.send(wakeEndpoint, { endpointId: 'no endpoint', waiting: 1 })).toMatchObject({ kind: 'refused', refusal: { code: 'invalid_value', param: 'endpointId' } });
    expect(await world.commands.send(wakeEndpoint, { endpointId: 'ep_9', waiting: 1 })).toMatchObject({ kind: 'refused', refusal: { code: 'endpoint_not_found' } });
  });

  test('serves health and the number of wanted replicas', async () => {
    const service = await world.start();
    await world.deploy('ep_1', { minReplicas: 2 });
    await world.run(1_000);
    expect((await fetch(`${service.url}/livez`)).status).toBe(200);
    expect(await (await fetch(`${service.url}/metrics`)).text()).toContain('penstock_wanted_replicas{service="autoscaler"} 2');
  });
});
