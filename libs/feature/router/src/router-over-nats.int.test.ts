import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { admitRequest, releaseLeases, type CommandReply, type Lease } from '@penstock/contract-commands';
import { endpointDeployedV1, replicaPlacedV2, type CatalogueEvent } from '@penstock/contract-events';
import type { RunningService } from '@penstock/feature-shell';
import { connectNats, NatsCommandClient, natsCommandTransport, NatsSignals, type NatsLink } from '@penstock/infra-nats';
import { createSystemTimers, systemClock } from '@penstock/infra-telemetry';
import { followProjection, silentLogger, type AggregateRef } from '@penstock/kernel';
import { MemoryEventLog, SequentialIds, startTestNats, type TestNats } from '@penstock/testing-kit';
import { routerConfig } from './router-config.js';
import { startRouter } from './start-router.js';

const ENDPOINTS = Array.from({ length: 8 }, (_, index) => `ep_${index}`);
let server: TestNats;
const links: NatsLink[] = [];
const routers: RunningService[] = [];
const log = new MemoryEventLog();
const ids = new SequentialIds();
let gateway: NatsCommandClient;

async function link(): Promise<NatsLink> {
  const made = await connectNats({ url: server.url, name: 'test' });
  links.push(made);
  return made;
}

async function start(drainTimeoutMs = 5_000): Promise<void> {
  const own = await link();
  routers.push(await startRouter(routerConfig.parse({ DRAIN_TIMEOUT_MS: String(drainTimeoutMs), ROUTER_LEARNING_MS: '0', ROUTER_LEASE_TTL_MS: '600000' }), {
    clock: systemClock,
    timers: createSystemTimers(silentLogger),
    ids, log,
    logger: silentLogger,
    probe: { generate: () => Promise.resolve({ kind: 'answered', ms: 1, completionTokens: 1 }) },
    commands: new NatsCommandClient(own),
    signals: new NatsSignals(own),
    follow: (projection) => followProjection(log, projection),
    commandTransport: natsCommandTransport({ url: server.url, name: 'router', queue: 'router' }),
  }));
}

async function append(ref: AggregateRef, event: CatalogueEvent): Promise<void> {
  const commandId = ids.next('cmd');
  await log.append({ ref, events: [event], expected: 'any', commandId, correlationId: commandId, causationId: commandId, source: 'penstock/test', nowMs: Date.now() });
}

beforeAll(async () => {
  server = await startTestNats();
  for (const endpointId of ENDPOINTS) {
    const replicaId = `rep_${endpointId}`;
    await append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.deployed.v1', data: { ...endpointDeployedV1.example, endpointId, name: endpointId } });
    const replica = { context: 'fleet', aggregate: 'replica', id: replicaId } as const;
    await append(replica, { type: 'replica.placed.v2', data: { ...replicaPlacedV2.example, replicaId, endpointId } });
    await append(replica, { type: 'replica.ready.v1', data: { replicaId, url: 'http://127.0.0.1:9000', engine: 'engine-sim', servedModel: 'm', slots: 1, contextTokens: 2_048, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } } });
  }
  await start();
  await start();
  const own = await link();
  gateway = new NatsCommandClient(own);
});

afterAll(async () => {
  for (const router of routers) await router.close();
  for (const made of links) await made.close();
  await server.close();
});

function admit(requestId: string, endpointId: string): Promise<CommandReply<Lease>> {
  return gateway.send(admitRequest, { requestId, gatewayId: 'inst_g', organisationId: 'org_1', endpointId, modelName: 'm', waitMsMax: 20_000 }, { timeoutMs: 25_000 });
}

test('two routers on a real broker lend each slot once, and take it back when it is released', async () => {
  const replies = await Promise.all(ENDPOINTS.flatMap((endpointId) => [0, 1, 2].map(async (index) => {
    const reply = await admit(`req_${endpointId}_${index}`, endpointId);
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    release([reply.value]);
    return reply.value;
  })));
  // Each endpoint has one slot, and leases outlive the waiting time: the second and third were served by releases alone.
  expect(new Set(replies.map((lease) => lease.leaseId)).size).toBe(3 * ENDPOINTS.length);
});

async function holdEverySlot(name: string): Promise<Map<string, Lease>> {
  const held = new Map<string, Lease>();
  for (const endpointId of ENDPOINTS) {
    const reply = await admit(`req_${endpointId}_${name}`, endpointId);
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    held.set(endpointId, reply.value);
  }
  return held;
}

function release(leases: Iterable<Lease>): void {
  for (const { leaseId, replicaId, endpointId } of leases) void gateway.send(releaseLeases, { releases: [{ leaseId, replicaId, endpointId, outcome: 'ok' }] });
}

const outcomeOf = (reply: CommandReply<Lease>): string => (reply.kind === 'ok' ? 'ok' : reply.refusal.code);

test('a router that leaves loses nobody who waits', async () => {
  const held = await holdEverySlot('held');
  const waiting = ENDPOINTS.map((endpointId) => admit(`req_${endpointId}_waits`, endpointId));
  const [leaver] = routers;
  expect(await (await fetch(`${leaver?.url}/metrics`)).text()).toContain('penstock_router_in_flight{endpoint=');
  const left = leaver?.close();
  release(held.values());
  const replies = await Promise.all(waiting);
  expect(replies.map(outcomeOf)).toEqual(ENDPOINTS.map(() => 'ok'));
  await left;
  release(replies.flatMap((reply) => (reply.kind === 'ok' ? [reply.value] : [])));
});

test('who still waits when the drain is over is told to ask again, and holds no second place', async () => {
  await start(1_000);
  const held = await holdEverySlot('busy');
  const waiting = ENDPOINTS.map((endpointId) => admit(`req_${endpointId}_late`, endpointId));
  await routers.at(-1)?.close();
  release(held.values());
  const replies = await Promise.all(waiting);
  const outcomes = replies.map(outcomeOf);
  expect(outcomes).toContain('shutting_down');
  expect(outcomes.filter((outcome) => outcome !== 'ok' && outcome !== 'shutting_down')).toEqual([]);
  release(replies.flatMap((reply) => (reply.kind === 'ok' ? [reply.value] : [])));
  const again = await Promise.all(ENDPOINTS.filter((_, index) => replies[index]?.kind === 'refused').map((endpointId) => admit(`req_${endpointId}_late`, endpointId)));
  expect(again.map(outcomeOf)).toEqual(again.map(() => 'ok'));
});
