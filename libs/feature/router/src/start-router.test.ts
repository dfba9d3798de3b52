import { afterEach, describe, expect, test } from '@jest/globals';
import { admitRequest, cancelAdmission, releaseLeases, renewLeases, wakeEndpoint, type CommandReply, type Lease } from '@penstock/contract-commands';
import { endpointDeployedV1, replicaPlacedV2, type CatalogueEvent, type EndpointDeployedV1 } from '@penstock/contract-events';
import type { RunningService } from '@penstock/feature-shell';
import { followProjection, silentLogger, type AggregateRef, type LiveProjection, type Projection } from '@penstock/kernel';
import { eventually, FixedClock, LocalCommandClient, localCommandTransport, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds } from '@penstock/testing-kit';
import { addressedTo } from './instance-address.js';
import type { EngineTarget, ProbeResult } from '@penstock/domain-serving';
import { routerConfig } from './router-config.js';
import { startRouter } from './start-router.js';

type Admitted = CommandReply<Lease>;

/** Lets everything run that needs no time to pass: inside one process that is one turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class World {
  readonly clock = new FixedClock();
  readonly timers = new ManualTimers(this.clock);
  readonly log = new MemoryEventLog();
  readonly commands = new LocalCommandClient();
  readonly signals = new MemorySignals();
  readonly ids = new SequentialIds();
  readonly probes: EngineTarget[] = [];
  probeResult: ProbeResult = { kind: 'answered', ms: 1, completionTokens: 1 };
  readonly routers: RunningService[] = [];
  readonly followers: LiveProjection<unknown>[] = [];
  private events = 0;

  async start(environment: Record<string, string> = { ROUTER_LEARNING_MS: '0' }): Promise<RunningService> {
    const { clock, timers, log, commands, signals, ids } = this;
    const router = await startRouter(routerConfig.parse({ DRAIN_TIMEOUT_MS: '5000', ...environment }), {
      clock, timers, log, commands, signals, ids,
      logger: silentLogger,
      probe: {
        generate: (target) => {
          this.probes.push(target);
          return Promise.resolve(this.probeResult);
        },
      },
      follow: async <State>(projection: Projection<State>) => {
        const follower = await followProjection(log, projection);
        this.followers.push(follower);
        return follower;
      },
      commandTransport: localCommandTransport(commands),
    });
    this.routers.push(router);
    return router;
  }

  async append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
    const commandId = `cmd_${(this.events += 1)}`;
    const result = await this.log.append({ ref, events: [event], expected: 'any', commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: this.clock.now() });
    if (result.kind !== 'appended') throw new Error('not stored');
    const stream = `EV_${ref.context.toUpperCase()}` as 'EV_FLEET';
    await Promise.all(this.followers.filter((follower) => stream in follower.positions() || result.lastSequence === 1).map(async (follower) => {
      if (stream in follower.positions()) await follower.waitFor(stream, result.lastSequence);
    }));
  }

  async deploy(endpointId: string, serving: Partial<EndpointDeployedV1['serving']> = {}): Promise<void> {
    const data = { ...endpointDeployedV1.example, endpointId, name: endpointId, serving: { slotsPerReplica: 1, contextTokens: 2_048, queueMax: 200, queueWaitMsMax: 30_000, ...serving } };
    await this.append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.deployed.v1', data });
  }

  async place(replicaId: string, endpointId = 'ep_1'): Promise<void> {
    await this.replica(replicaId, { type: 'replica.placed.v2', data: { ...replicaPlacedV2.example, replicaId, endpointId } });
  }

  async ready(replicaId: string, slots = 1, endpointId = 'ep_1'): Promise<void> {
    await this.place(replicaId, endpointId);
    await this.replica(replicaId, { type: 'replica.ready.v1', data: { replicaId, url: `http://127.0.0.1:9000/${replicaId}`, engine: 'engine-sim', servedModel: 'm', slots, contextTokens: 2_048, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } } });
  }

  async fail(replicaId: string, reason: string): Promise<void> {
    await this.replica(replicaId, { type: 'replica.failed.v1', data: { replicaId, phase: 'loading', code: 'engine_exited', reason } });
  }

  replica(replicaId: string, event: CatalogueEvent): Promise<void> {
    return this.append({ context: 'fleet', aggregate: 'replica', id: replicaId }, event);
  }

  admit(name: string, changes: Partial<{ endpointId: string; waitMsMax: number; excludedReplicaIds: string[]; organisationId: string }> = {}): Promise<Admitted> {
    return this.commands.send(admitRequest, { requestId: `req_${name}`, gatewayId: 'inst_gateway', organisationId: 'org_1', endpointId: 'ep_1', modelName: 'm', waitMsMax: 60_000, ...changes });
  }

  /** Sends an admission that has to wait, and returns once it stands in the queue; its reply comes later. */
  async enqueue(name: string, changes: Parameters<World['admit']>[1] = {}): Promise<{ readonly reply: Promise<Admitted> }> {
    const reply = this.admit(name, changes);
    await turn();
    return { reply };
  }

  async release(lease: Lease, outcome: 'ok' | 'aborted' | 'engine-failed' = 'ok', timedOut = false): Promise<number> {
    const { leaseId, replicaId, endpointId } = lease;
    const reply = await this.commands.send(releaseLeases, { releases: [{ leaseId, replicaId, endpointId, outcome, timedOut }] });
    return reply.kind === 'ok' ? reply.value.released : -1;
  }

  wakes(): number {
    return this.commands.sent.filter((command) => command.subject === wakeEndpoint.subject).length;
  }

  async close(): Promise<void> {
    await Promise.all(this.routers.map((router) => router.close()));
  }
}

let world = new World();
afterEach(async () => {
  await world.close();
  world = new World();
});

async function warmWorld(slots = 1, serving: Partial<EndpointDeployedV1['serving']> = {}): Promise<void> {
  await world.start();
  await world.deploy('ep_1', serving);
  await world.ready('rep_1', slots);
}

function granted(reply: Admitted): Lease {
  if (reply.kind !== 'ok') throw new Error(`refused: ${JSON.stringify(reply.refusal)}`);
  return reply.value;
}

const codeOf = (reply: Admitted): string => (reply.kind === 'ok' ? 'ok' : reply.refusal.code);

/** Keeps what settled, in order, without waiting for it. */
function watch(replies: Record<string, Promise<Admitted>>): string[] {
  const settled: string[] = [];
  for (const [name, reply] of Object.entries(replies)) void reply.then((value) => settled.push(`${name} ${codeOf(value)}`));
  return settled;
}

describe('a warm endpoint', () => {
  test('lends slots, queues in order, and hands each slot on', async () => {
    await warmWorld();
    const first = granted(await world.admit('1'));
    expect(first).toMatchObject({ endpointId: 'ep_1', replicaId: 'rep_1', url: 'http://127.0.0.1:9000/rep_1', servedModel: 'm', queuedMs: 0, coldStart: false });
    const { reply: second } = await world.enqueue('2');
    const { reply: third } = await world.enqueue('3');
    const settled = watch({ second, third });
    await world.timers.advance(250);
    expect(settled).toEqual([]);
    expect(await world.release(first)).toBe(1);
    expect(granted(await second).queuedMs).toBe(250);
    await world.release(granted(await second));
    await third;
    expect(settled).toEqual(['second ok', 'third ok']);
    expect(world.wakes()).toBe(0);
  });

  test('refuses when the queue is full, and when a request waited too long', async () => {
    await warmWorld(1, { queueMax: 1, queueWaitMsMax: 1_000 });
    await world.admit('1');
    const { reply: second } = await world.enqueue('2');
    expect(await world.admit('3')).toMatchObject({ kind: 'refused', refusal: { code: 'queue_full', retryAfterMs: expect.any(Number) } });
    await world.timers.advance(1_000);
    expect(codeOf(await second)).toBe('queue_timeout');
  });

  test('a cancelled request makes way', async () => {
    await warmWorld();
    const first = granted(await world.admit('1'));
    const { reply: second } = await world.enqueue('2');
    const { reply: third } = await world.enqueue('3');
    expect(await world.commands.send(cancelAdmission, { requestId: 'req_2', endpointId: 'ep_1' })).toEqual({ kind: 'ok', value: { cancelled: true } });
    expect(codeOf(await second)).toBe('request_timeout');
    await world.release(first);
    expect(codeOf(await third)).toBe('ok');
  });

  test('a lease that nobody renews ends, one that is renewed does not', async () => {
    await warmWorld(2);
    const kept = granted(await world.admit('1'));
    const lost = granted(await world.admit('2'));
    await world.timers.advance(15_000);
    expect(await world.commands.send(renewLeases, { gatewayId: 'inst_gateway', leases: [kept] })).toEqual({ kind: 'ok', value: { renewed: 1 } });
    const { reply: third } = await world.enqueue('3');
    await world.timers.advance(5_000);
    expect(codeOf(await third)).toBe('ok');
    expect(await world.release(lost)).toBe(0);
    expect(await world.release(kept)).toBe(1);
  });

  test('a replica that dies takes its leases along; those that wait go to the next one', async () => {
    await warmWorld();
    const first = granted(await world.admit('1'));
    const { reply: second } = await world.enqueue('2');
    await world.fail('rep_1', 'the engine exited');
    await world.ready('rep_2');
    expect(granted(await second)).toMatchObject({ replicaId: 'rep_2', coldStart: true });
    expect(await world.release(first, 'engine-failed')).toBe(0);
  });

  test('a replica that fails its requests is left out, and the log says why', async () => {
    await warmWorld();
    await world.ready('rep_2');
    for (let index = 0; index < 5; index += 1) await world.release(granted(await world.admit(String(index), { excludedReplicaIds: ['rep_2'] })), 'engine-failed');
    const history = await eventually(() => world.log.load({ context: 'routing', aggregate: 'replica-circuit', id: 'rep_1' }), (events) => events.length > 0);
    expect(history[0]).toMatchObject({ type: 'replica-circuit.opened.v1', data: { endpointId: 'ep_1', failures: 5 }, source: 'penstock/router' });
    expect(granted(await world.admit('next')).replicaId).toBe('rep_2');
    const { reply: waiting } = await world.enqueue('waits', { excludedReplicaIds: ['rep_2'] });
    world.probeResult = { kind: 'failed', reason: 'it hangs' };
    await world.timers.advance(10_000);
    expect(world.probes).toEqual([{ kind: 'engine-sim', url: 'http://127.0.0.1:9000/rep_1', servedModel: 'm' }]);
    // A failed probe keeps the circuit open, and no request was spent on finding out.
    await turn();
    world.probeResult = { kind: 'answered', ms: 1, completionTokens: 1 };
    await world.timers.advance(10_000);
    expect(granted(await waiting).replicaId).toBe('rep_1');
    expect(world.probes).toHaveLength(2);
    await eventually(() => world.log.load({ context: 'routing', aggregate: 'replica-circuit', id: 'rep_1' }), (events) => events.at(-1)?.type === 'replica-circuit.closed.v1');
  });

  test('a replica that let one request time out is out until it gives a token, which it is asked for at once', async () => {
    await warmWorld();
    await world.ready('rep_2');
    world.probeResult = { kind: 'failed', reason: 'it hangs' };
    await world.release(granted(await world.admit('1', { excludedReplicaIds: ['rep_2'] })), 'engine-failed', true);
    const { reply: waiting } = await world.enqueue('2', { excludedReplicaIds: ['rep_2'] });
    await world.timers.advance(100);
    expect(world.probes).toEqual([{ kind: 'engine-sim', url: 'http://127.0.0.1:9000/rep_1', servedModel: 'm' }]);
    await turn();
    world.probeResult = { kind: 'answered', ms: 1, completionTokens: 1 };
    await world.timers.advance(10_000);
    expect(granted(await waiting).replicaId).toBe('rep_1');
  });

  test('an endpoint that nobody knows, or that was retired, is refused', async () => {
    await warmWorld();
    const { reply: unknown } = await world.enqueue('1', { endpointId: 'ep_unknown' });
    const { reply: soon } = await world.enqueue('2', { endpointId: 'ep_2' });
    await world.deploy('ep_2');
    await world.ready('rep_3', 1, 'ep_2');
    expect(codeOf(await soon)).toBe('ok');
    await world.timers.advance(1_000);
    expect(codeOf(await unknown)).toBe('endpoint_not_found');
    const { reply: waiting } = await world.enqueue('3', { endpointId: 'ep_2' });
    await world.append({ context: 'registry', aggregate: 'endpoint', id: 'ep_2' }, { type: 'endpoint.retired.v1', data: { endpointId: 'ep_2', reason: 'deleted' } });
    expect(codeOf(await waiting)).toBe('endpoint_not_found');
    expect(codeOf(await world.admit('4', { endpointId: 'ep_2' }))).toBe('endpoint_not_found');
  });
});

describe('a cold endpoint', () => {
  test('a hundred requests wake it once, and all are served', async () => {
    await world.start();
    world.commands.serve(wakeEndpoint, () => ({ kind: 'ok', value: { wantedReplicas: 1 } }));
    await world.deploy('ep_1');
    const all = Array.from({ length: 100 }, (_, index) => world.admit(String(index)).then(async (reply) => {
      const lease = granted(reply);
      await world.release(lease);
      return lease.coldStart;
    }));
    await turn();
    await world.timers.advance(5_000);
    expect(world.wakes()).toBe(1);
    await world.ready('rep_1', 4);
    expect(await Promise.all(all)).toEqual(Array.from({ length: 100 }, () => true));
    expect(world.wakes()).toBe(1);
  });

  test('an autoscaler that is away is asked again, ever more slowly, while somebody waits', async () => {
    await world.start();
    await world.deploy('ep_1');
    const { reply: first } = await world.enqueue('1');
    await world.timers.advance(1_000);
    await turn();
    world.commands.serve(wakeEndpoint, () => ({ kind: 'ok', value: { wantedReplicas: 1 } }));
    expect(world.wakes()).toBe(0);
    await eventually(async () => { await world.timers.advance(500); return world.wakes(); }, (wakes) => wakes === 1);
    await world.ready('rep_1');
    const lease = granted(await first);
    await world.release(lease);
    // Scaled to zero and asked again at once: a new wake, although the last one is fresh.
    await world.replica('rep_1', { type: 'replica.stopped.v1', data: { replicaId: 'rep_1', reason: 'idle' } });
    const { reply: second } = await world.enqueue('2');
    await eventually(() => world.wakes(), (wakes) => wakes === 2);
    await world.ready('rep_2');
    expect(codeOf(await second)).toBe('ok');
  });

  test('does not hold requests for a start that cannot come', async () => {
    await world.start();
    world.commands.serve(wakeEndpoint, () => ({ kind: 'ok', value: { wantedReplicas: 1 } }));
    await world.deploy('ep_1');
    const { reply: first } = await world.enqueue('1');
    await world.append({ context: 'fleet', aggregate: 'endpoint-placement', id: 'ep_1' }, { type: 'placement.refused.v1', data: { endpointId: 'ep_1', wantedReplicas: 1, placedReplicas: 0, code: 'no_memory', reason: '400 MB wanted, 120 MB free', candidates: [] } });
    await world.timers.advance(5_000);
    expect(await first).toMatchObject({ kind: 'refused', refusal: { code: 'no_capacity', message: expect.stringContaining('400 MB wanted, 120 MB free') } });

    const { reply: second } = await world.enqueue('2');
    await world.place('rep_1');
    await world.fail('rep_1', 'the engine exited with code 1');
    await world.place('rep_2');
    await world.timers.advance(10_000);
    await world.fail('rep_2', 'the engine exited with code 2');
    await world.timers.advance(100);
    expect(await second).toMatchObject({ kind: 'refused', refusal: { code: 'no_capacity', message: expect.stringContaining('code 2') } });
  });
});

describe('load signals', () => {
  test('tell every second what waits and what runs', async () => {
    await warmWorld();
    const loads = () => world.signals.published.filter((signal) => signal.subject === 'tele.endpoint.ep_1').map((signal) => signal.data);
    await world.timers.advance(1_000);
    expect(loads().at(-1)).toMatchObject({ waiting: 0, running: 0, lastRequestAtMs: null });
    const requestedAtMs = world.clock.now();
    const lease = granted(await world.admit('1'));
    const { reply: second } = await world.enqueue('2');
    await world.timers.advance(1_000);
    expect(loads().at(-1)).toEqual({ endpointId: 'ep_1', sentAtMs: world.clock.now(), waiting: 1, running: 1, lastRequestAtMs: requestedAtMs });
    await world.release(lease);
    await second;
  });
});

describe('restart and stop', () => {
  test('a new router learns from renewals what is in flight before it lends', async () => {
    await warmWorld();
    const lease = granted(await world.admit('1'));
    await world.close();
    await world.start({ ROUTER_LEARNING_MS: '500' });
    const { reply: second } = await world.enqueue('2');
    const settled = watch({ second });
    expect(await world.commands.send(renewLeases, { gatewayId: 'inst_gateway', leases: [lease] })).toEqual({ kind: 'ok', value: { renewed: 1 } });
    await world.timers.advance(1_000);
    expect(settled).toEqual([]);
    expect(await world.release(lease)).toBe(1);
    expect(codeOf(await second)).toBe('ok');
  });

  test('a router that stops answers those that wait', async () => {
    await warmWorld();
    await world.admit('1');
    const { reply: second } = await world.enqueue('2');
    await world.close();
    expect(await second).toMatchObject({ kind: 'refused', refusal: { code: 'shutting_down' } });
  });
});

describe('several routers', () => {
  const endpoints = Array.from({ length: 12 }, (_, index) => `ep_${index}`);

  async function pair(): Promise<RunningService> {
    const first = await world.start();
    await world.start();
    for (const endpointId of endpoints) {
      await world.deploy(endpointId);
      await world.ready(`rep_${endpointId}`, 1, endpointId);
    }
    return first;
  }

  const forwards = (): number => world.commands.sent.filter((command) => command.subject.startsWith(`${admitRequest.subject}.`)).length;

  test('each endpoint has one owner, whoever is asked', async () => {
    await pair();
    const leases = [];
    for (const endpointId of endpoints) leases.push(granted(await world.admit(endpointId, { endpointId })));
    expect(forwards()).toBeGreaterThan(0);
    expect(forwards()).toBeLessThan(endpoints.length);
    for (const lease of leases) expect(await world.release(lease)).toBe(1);
  });

  test('a router that leaves hands over what waits and what runs', async () => {
    const first = await pair();
    const leases = new Map<string, Lease>();
    for (const endpointId of endpoints) leases.set(endpointId, granted(await world.admit(endpointId, { endpointId })));
    const waiting = endpoints.map((endpointId) => world.admit(`${endpointId}_next`, { endpointId }));
    await turn();
    const settled = watch(Object.fromEntries(waiting.map((reply, index) => [String(index), reply])));
    const closed = first.close();
    await eventually(() => world.signals.published.some((signal) => JSON.stringify(signal.data).includes('"isLeaving":true')), Boolean);
    await world.timers.advance(1_000);
    expect(settled).toEqual([]);
    for (const lease of leases.values()) expect(await world.release(lease)).toBe(1);
    expect((await Promise.all(waiting)).map(codeOf)).toEqual(endpoints.map(() => 'ok'));
    await closed;
  });

  test('a router that dies without a word is replaced at the first request that misses it', async () => {
    await pair();
    const presences = world.signals.published.filter((signal) => signal.subject.startsWith('tele.router.'));
    const firstId = String(presences[0]?.subject.split('.')[2]);
    world.commands.withdraw(addressedTo(admitRequest, firstId));
    for (const endpointId of endpoints) expect(codeOf(await world.admit(endpointId, { endpointId }))).toBe('ok');
  });
});
