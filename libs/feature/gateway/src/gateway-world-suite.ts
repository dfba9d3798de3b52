import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { admitRequest, releaseLeases, renewLeases, type Lease } from '@penstock/contract-commands';
import type { UsageRecord } from '@penstock/contract-events';
import { usageRecordsOf } from '@penstock/domain-usage';
import type { RunningService } from '@penstock/feature-shell';
import { FileUsageSpool, HmacKeyMinter } from '@penstock/infra-spool';
import { followProjection, silentLogger, type Clock, type DeadLetterEntry, type NewEvent, type Timers } from '@penstock/kernel';
import { eventually, LocalCommandClient, MemoryEventLog, MemoryObjectStore, MemorySharedRecords, MemorySignals } from '@penstock/testing-kit';
import { randomBytes } from 'node:crypto';
import { FakeEngine } from './fake-engine-suite.js';
import { gatewayConfig } from './gateway-config.js';
import type { GatewayPorts } from './gateway-ports.js';
import { startGateway } from './start-gateway.js';

export const ADMIN_KEY = 'admin-key-for-tests-0001';
export const INTERNAL_TOKEN = 'internal-token-for-tests';
const MODEL = 'public-model';

const systemClock: Clock = { now: () => Date.now() };
const systemTimers: Timers = {
  after: (delayMs, call) => {
    const timer = setTimeout(call, delayMs);
    return () => clearTimeout(timer);
  },
  every: (intervalMs, call) => {
    const timer = setInterval(() => void call(), intervalMs);
    return () => clearInterval(timer);
  },
};

export interface World {
  readonly url: string;
  readonly log: MemoryEventLog;
  readonly commands: LocalCommandClient;
  readonly signals: MemorySignals;
  readonly engines: readonly FakeEngine[];
  readonly deadLetters: DeadLetterEntry[];
  readonly objects: MemoryObjectStore;
  readonly key: string;
  readonly service: RunningService;
  fetch(path: string, init?: RequestInit & { readonly key?: string | null }): Promise<Response>;
  /** Posts a chat request with the world's key. */
  chat(body: object, init?: RequestInit): Promise<Response>;
  usage(count: number): Promise<UsageRecord[]>;
  append(context: 'registry' | 'fleet', aggregate: string, id: string, event: NewEvent): Promise<void>;
  /** Serves admissions from the engines in turn, as a router would. */
  serveRouter(): void;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly engines?: number;
  readonly settings?: Readonly<Record<string, string>>;
  readonly slots?: number;
  readonly engineOptions?: Readonly<Record<string, boolean | number>>;
  readonly spoolBytesMax?: number;
  /** Shared by the gateways of a test. */
  readonly answers?: MemorySharedRecords;
  /** Of another world, whose endpoint, engines and router this gateway shares; it has none of its own then. */
  readonly log?: MemoryEventLog;
  readonly commands?: LocalCommandClient;
}

const randomIds = { next: (prefix: string) => `${prefix}_${randomBytes(16).toString('hex')}` };

/** A gateway on loopback with engines on loopback; the event log, the router and the stores are in memory. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-gateway-'));
  const log = options.log ?? new MemoryEventLog();
  const commands = options.commands ?? new LocalCommandClient();
  const signals = new MemorySignals();
  const engines = await Promise.all(Array.from({ length: options.engines ?? 1 }, () => FakeEngine.start()));
  const append = async (context: 'registry' | 'fleet', aggregate: string, id: string, event: NewEvent): Promise<void> => {
    await log.append({ ref: { context, aggregate, id }, events: [event], expected: 'any', commandId: randomIds.next('cmd'), source: 'test', nowMs: Date.now(), correlationId: 'c', causationId: 'c' });
  };
  if (options.log === undefined) await deploy(append, 'ep_1', MODEL, null, options.slots ?? 4, options.engineOptions ?? {});
  for (const [index, engine] of engines.entries()) await placeReplica(append, `rep_${index}`, engine.url, options.slots ?? 4);
  const usage = await FileUsageSpool.open({ folder, log, logger: silentLogger, bytesMax: options.spoolBytesMax });
  const deadLetters: DeadLetterEntry[] = [];
  const objects = new MemoryObjectStore();
  const ports: GatewayPorts = {
    clock: systemClock, timers: systemTimers, ids: randomIds, logger: silentLogger, log, commands, signals, usage, objects, answers: options.answers ?? new MemorySharedRecords(), keys: new HmacKeyMinter('pepper-of-the-tests-0001'),
    follow: (projection) => followProjection(log, projection),
    deadLetters: { list: () => Promise.resolve(deadLetters), redrive: (id) => Promise.resolve(deadLetters.some((letter) => letter.id === id) ? { kind: 'done' } : { kind: 'not-found' }) },
  };
  const config = gatewayConfig.parse({ ADMIN_KEY, INTERNAL_TOKEN, REQUEST_BYTES_MAX: '200000', UPLOAD_BYTES_MAX: '100000', DRAIN_TIMEOUT_MS: '2000', SHED_LOOP_LAG_MS: '60000', ...options.settings });
  const service = await startGateway(config, ports);
  const request = (path: string, init: RequestInit & { readonly key?: string | null } = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    if (init.key !== null && !headers.has('authorization')) headers.set('authorization', `Bearer ${init.key ?? ADMIN_KEY}`);
    if (typeof init.body === 'string' && !headers.has('content-type')) headers.set('content-type', 'application/json');
    return fetch(new URL(path, service.url), { ...init, headers });
  };
  const created = await request('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'test' }) });
  const { key } = await created.json() as { key: string };
  const world: World = {
    url: service.url, log, commands, signals, engines, deadLetters, objects, key, service, append, fetch: request,
    chat: (body, init) => request('/v1/chat/completions', { method: 'POST', key, body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }], ...body }), ...init }),
    usage: async (count) => eventually(() => log.all('EV_USAGE').flatMap(usageRecordsOf), (records) => records.length >= count),
    serveRouter: () => serveRouter(commands, engines),
    close: async () => {
      await service.close();
      await usage.close();
      await Promise.all(engines.map((engine) => engine.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return world;
}

type Append = World['append'];

export async function deploy(append: Append, endpointId: string, name: string, organisationId: string | null, slotsPerReplica = 4, engineOptions: Readonly<Record<string, boolean | number>> = {}): Promise<void> {
  await append('registry', 'endpoint', endpointId, {
    type: 'endpoint.deployed.v1',
    data: {
      endpointId, name, modelVersionId: 'mv_1', engine: 'vllm', organisationId, hardware: { acceleratorType: 'cpu', acceleratorCount: 1 }, scaling: { minReplicas: 1, maxReplicas: 2, scaleToZeroAfterIdleSeconds: null },
      serving: { slotsPerReplica, contextTokens: 2_048, queueMax: 4, queueWaitMsMax: 1_000 }, engineOptions: { ...engineOptions },
    },
  });
}

async function placeReplica(append: Append, replicaId: string, url: string, slots: number): Promise<void> {
  await append('fleet', 'replica', replicaId, {
    type: 'replica.placed.v1', data: { replicaId, endpointId: 'ep_1', modelVersionId: 'mv_1', nodeId: 'node_1', acceleratorIds: ['acc_1'], reservedBytes: 1, reason: { summary: 'test', candidates: [] } },
  });
  await append('fleet', 'replica', replicaId, {
    type: 'replica.ready.v1', data: { replicaId, url, engine: 'vllm', servedModel: 'inner-model', slots, contextTokens: 2_048, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } },
  });
}

function serveRouter(commands: LocalCommandClient, engines: readonly FakeEngine[]): void {
  let turn = 0;
  commands.serve(admitRequest, ({ excludedReplicaIds, endpointId }) => {
    const free = engines.map((engine, index) => ({ engine, replicaId: `rep_${index}` })).filter(({ replicaId }) => !excludedReplicaIds.includes(replicaId));
    const chosen = free[turn % Math.max(1, free.length)];
    turn += 1;
    if (chosen === undefined) return { kind: 'refused', refusal: { code: 'no_capacity', message: 'No other replica.', retryAfterMs: 1_000 } };
    const lease: Lease = { leaseId: randomIds.next('lease'), endpointId, replicaId: chosen.replicaId, modelVersionId: 'mv_1', url: chosen.engine.url, engine: 'vllm', servedModel: 'inner-model', expiresAtMs: Date.now() + 15_000, queuedMs: 1, coldStart: false };
    return { kind: 'ok', value: lease };
  });
  commands.serve(releaseLeases, ({ releases }) => ({ kind: 'ok', value: { released: releases.length } }));
  commands.serve(renewLeases, ({ leases }) => ({ kind: 'ok', value: { renewed: leases.length } }));
}

/** The `data` of every event of a streamed answer. */
export async function readEvents(response: Response): Promise<string[]> {
  const text = await response.text();
  return text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice('data: '.length));
}
