import { readdir, readFile, chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openAiErrorBody, ownLimits, requestExplanation } from '@penstock/contract-http';
import { usageRecordsOf } from '@penstock/domain-usage';
import { startStandalone, type Standalone } from '@penstock/infra-composition';
import { ChatClient, type ChatOutcome } from '../platform/chat-client.js';
import { metricOf } from '../platform/drill-world.js';
import { until } from '../platform/eventually.js';
import { runCli } from '../platform/run-cli.js';

const START_LIMIT_MS = 300_000;
const WAIT_MS = 30_000;
const WALKABLE = 0o711;

let folder = '';
let platform: Standalone;
let routerUrl = '';

/** Each request on a connection of its own, so that the kernel may give it to either gateway. */
const send = (path: string, init: { readonly method?: string; readonly key?: string; readonly body?: unknown } = {}): Promise<Response> => fetch(`${platform.url}${path}`, {
  method: init.method ?? (init.body === undefined ? 'GET' : 'POST'),
  headers: { authorization: `Bearer ${init.key ?? platform.adminKey}`, connection: 'close', ...(init.body === undefined ? {} : { 'content-type': 'application/json' }) },
  ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
});

async function admin<Value>(path: string, body?: unknown): Promise<Value> {
  const answer = await send(path, body === undefined ? {} : { body });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return await answer.json() as Value;
}

interface Replica {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly phase: string;
  readonly url: string;
}

/** Deploys a simulated engine and waits for its replicas. */
async function deploy(name: string, options: { readonly replicas?: number; readonly slots?: number; readonly queueMax?: number; readonly engine?: Readonly<Record<string, string | number | boolean>> }): Promise<readonly Replica[]> {
  const replicas = options.replicas ?? 1;
  const { endpoint_id: endpointId } = await admin<{ endpoint_id: string }>('/v1/models/deploy', {
    model_name: name, model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: replicas, max_replicas: replicas },
    serving: { slots_per_replica: options.slots ?? 64, context_tokens: 16_384, queue_max: options.queueMax ?? 100, queue_wait_ms_max: 30_000 }, engine_options: options.engine ?? {},
  });
  return until(`${name} is ready`, WAIT_MS, async () => {
    const fleet = await admin<{ replicas: Replica[] }>('/admin/v1/fleet');
    const ready = fleet.replicas.filter((replica) => replica.endpointId === endpointId && replica.phase === 'ready');
    return ready.length === replicas ? ready : undefined;
  });
}

async function createKey(name: string, limits: object = {}): Promise<{ readonly key: string; readonly id: string }> {
  const { id: organisationId } = await admin<{ id: string }>('/admin/v1/organisations', { name });
  const created = await admin<{ key: string; id: string }>('/admin/v1/keys', { name, project_id: `proj_${organisationId.slice(4)}` });
  if (Object.keys(limits).length > 0) await admin('/admin/v1/limits', { subject_id: created.id, ...limits });
  // Both gateways have to hear of the key before it is used.
  for (let heard = 0; heard < 12;) heard = (await send('/v1/models', { key: created.key })).ok ? heard + 1 : 0;
  return created;
}

const client = new ChatClient();
const ask = (model: string, key: string, tokensMax: number, content = 'Hi.'): Promise<ChatOutcome> => client.ask({ url: platform.url, key, model, content, stream: true, tokensMax, headers: { connection: 'close' } });

/** The gateway that this process started beside its own. */
async function secondGateway(): Promise<number> {
  return until('the second gateway', WAIT_MS, async () => {
    for (const entry of await readdir('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      const [command, status] = await Promise.all([readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => ''), readFile(`/proc/${entry}/status`, 'utf8').catch(() => '')]);
      if (command.includes('apps/gateway/dist/main.js') && new RegExp(`^PPid:\\s+${process.pid}$`, 'm').test(status)) return Number(entry);
    }
    return undefined;
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-data-plane-'));
  await chmod(folder, WALKABLE);
  platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, environment: { ...process.env, GATEWAY_PROCESSES: '2', FIRST_TOKEN_TIMEOUT_MS: '600000' } });
  routerUrl = platform.services.get('router')?.url ?? '';
}, START_LIMIT_MS);

afterAll(async () => {
  await platform.close();
  await rm(folder, { recursive: true, force: true });
});

describe('two gateways on one port', () => {
  test('share the limits of a key, and explain to it what it met', async () => {
    await deploy('shared', {});
    const { key } = await createKey('Shared', { requests_per_minute: 8 });
    const outcomes = await Promise.all(Array.from({ length: 24 }, () => ask('shared', key, 1)));
    expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(8);
    const refused = outcomes.find(({ status }) => status === 429);
    expect(openAiErrorBody.parse(JSON.parse(refused?.text ?? '{}')).error.limit).toMatchObject({ name: 'requests_per_minute', limit: 8, requested: 1 });
    expect(ownLimits.parse(await (await send('/v1/limits', { key })).json()).data).toMatchObject([{ name: 'requests_per_minute', limit: 8, used: 8, remaining: 0 }]);
    const answered = String(outcomes.find(({ status }) => status === 200)?.headers['x-request-id']);
    const told = await until('the record of the request', WAIT_MS, async () => {
      const answer = await send(`/v1/requests/${answered}`, { key });
      return answer.ok ? requestExplanation.parse(await answer.json()) : undefined;
    });
    expect(told).toMatchObject({ status: 'completed', model: 'shared', usage: { completion_tokens: 1 }, node_id: null });
    const stdout = await runCli(platform, 'why', 'request', answered);
    expect(stdout).toMatch(/^Request req_[0-9a-f]+ to shared: completed, 200\.\n {2}It (did not wait|waited)/);
    expect(stdout).toContain('worked on it for');
  });

  test('answer both, and one that is killed takes only its own streams along and comes back', async () => {
    await deploy('slow', { engine: { tokens_per_second: 20 } });
    const { key } = await createKey('Streams');
    const before = await secondGateway();
    const streams = Array.from({ length: 24 }, () => ask('slow', key, 60));
    await until('all streams run', WAIT_MS, async () => ((await metricOf(routerUrl, 'penstock_router_in_flight')) >= 24 ? true : undefined));
    process.kill(before, 'SIGKILL');
    const outcomes = await Promise.all(streams);
    const whole = outcomes.filter(({ isComplete, text }) => isComplete && text.endsWith('data: [DONE]\n\n'));
    expect(whole.length).toBeGreaterThan(0);
    expect(whole.length).toBeLessThan(24);
    // Nothing is left half done: what did not end well broke off with its gateway.
    expect(outcomes.filter(({ status, isComplete }) => status === 200 && isComplete).length).toBe(whole.length);
    expect((await ask('slow', key, 1)).status).toBe(200);
    const after = await until('another second gateway', WAIT_MS, async () => {
      const pid = await secondGateway();
      return pid === before ? undefined : pid;
    });
    expect(after).not.toBe(before);
    // It settles what its predecessor left in its spool: every stream is in the log once, and the request after them, too.
    // A stream that broke off before its head has no id that a client could know, so the records are found by their model.
    const records = await until('a record of every stream', WAIT_MS, async () => {
      const { data } = await admin<{ data: { type: string; data: unknown }[] }>('/admin/v1/events?context=usage&limit=1000');
      const found = data.flatMap(usageRecordsOf).filter(({ modelName }) => modelName === 'slow');
      return new Set(found.map(({ requestId }) => requestId)).size === 25 ? found : undefined;
    });
    expect(records.filter(({ status }) => status === 'completed')).toHaveLength(whole.length + 1);
    expect(records.filter(({ status }) => status === 'interrupted')).toHaveLength(24 - whole.length);
  });
});

describe('classes in the queue', () => {
  test('a request of a low tier is shed first, and waits behind one that came later', async () => {
    await deploy('narrow', { slots: 1, queueMax: 2, engine: { tokens_per_second: 20 } });
    const [high, low] = [await createKey('High', { priority_tier: 'paid' }), await createKey('Low', { priority_tier: 'batch' })];
    const depth = (waiting: number): Promise<true> => until(`${waiting} requests wait`, WAIT_MS, async () => ((await metricOf(routerUrl, 'penstock_router_queue_depth')) === waiting ? true : undefined));
    const ended: string[] = [];
    const start = (name: string, key: string, tokens: number): Promise<ChatOutcome> => ask('narrow', key, tokens).finally(() => ended.push(name));
    const inFlight = await metricOf(routerUrl, 'penstock_router_in_flight');
    const running = start('running', high.key, 40);
    await until('the slot is taken', WAIT_MS, async () => ((await metricOf(routerUrl, 'penstock_router_in_flight')) > inFlight ? true : undefined));
    const first = start('low 1', low.key, 1);
    await depth(1);
    const second = start('low 2', low.key, 1);
    await depth(2);
    const later = start('high', high.key, 1);
    const shed = await second;
    expect([shed.status, openAiErrorBody.parse(JSON.parse(shed.text)).error]).toMatchObject([429, { code: 'queue_full', limit: { name: 'queue', limit: 2 } }]);
    expect(ended).toEqual(['low 2']);
    const outcomes = await Promise.all([running, first, later]);
    expect(outcomes.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(ended).toEqual(['low 2', 'running', 'high', 'low 1']);
  });
});

describe('hedging', () => {
  // The gateways would wait ten minutes for a first token.
  test('a replica that hangs under its green health costs requests no more than the usual wait', async () => {
    const [hanging] = await deploy('hedged', { replicas: 2, engine: { hedge: true, fault_injection: true } });
    const { key } = await createKey('Hedged');
    // Long prompts are not hedged, so none of the second attempts that these allow is used up.
    for (let request = 0; request < 80; request += 1) expect((await ask('hedged', key, 1, 'long '.repeat(4_096))).status).toBe(200);
    const answer = await fetch(`${hanging?.url}/sim/fault`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ fault: 'hang' }) });
    expect(answer.ok).toBe(true);
    // Two in a row reach both replicas, whichever is next.
    const outcomes = [await ask('hedged', key, 1), await ask('hedged', key, 1)];
    expect(outcomes.map(({ status, text }) => [status, text.endsWith('data: [DONE]\n\n')])).toEqual([[200, true], [200, true]]);
  });
});
