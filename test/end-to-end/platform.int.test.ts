import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { usageRecordsOf } from '@penstock/domain-usage';
import { deployFirstModel, operatorEnvironment, startStandalone, type Standalone } from '@penstock/infra-composition';
import OpenAI6 from 'openai';
import OpenAI7 from 'openai7';
import { installPythonClient, runPythonChecks, deployTargets } from '../conformance/run.js';
import { runChecks, type Target } from '../conformance/check.js';
import { openAiNodeChecks, type OpenAiPackage } from '../conformance/openai-node-checks.js';
import { until } from '../platform/eventually.js';
import { runCli } from '../platform/run-cli.js';

const START_LIMIT_MS = 300_000;
const WAIT_MS = 60_000;
const WALKABLE = 0o711;

let folder = '';
let platform: Standalone;
let targets: readonly Target[] = [];

const start = (): Promise<Standalone> => startStandalone({ dataDir: join(folder, 'data'), port: 0 });

async function admin(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' };
  const answer = await fetch(`${platform.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-e2e-'));
  await chmod(folder, WALKABLE);
  platform = await start();
  targets = await deployTargets(platform);
}, START_LIMIT_MS);

afterAll(async () => {
  await platform.close();
  await rm(folder, { recursive: true, force: true });
});

describe('the whole platform with a real model in a real engine', () => {
  test('the official JavaScript clients, of both majors, on both engines', async () => {
    for (const target of targets) {
      const results = [
        ...(await runChecks('openai 6', openAiNodeChecks({ OpenAI: OpenAI6 }), target)),
        ...(await runChecks('openai 7', openAiNodeChecks({ OpenAI: OpenAI7 as unknown as OpenAiPackage['OpenAI'] }), target)),
      ];
      expect(results.filter((result) => !result.ok)).toEqual([]);
      expect(results.length).toBeGreaterThan(20);
    }
  }, START_LIMIT_MS);

  test('the official Python client', async () => {
    const python = await installPythonClient(() => undefined);
    for (const target of targets) expect((await runPythonChecks(python, target)).filter((result) => !result.ok)).toEqual([]);
  }, START_LIMIT_MS);

  test('the usage of an answer is in ClickHouse, to the token, and its events tell the whole story', async () => {
    const target = targets[0]!;
    const client = new OpenAI6({ baseURL: target.baseUrl, apiKey: target.apiKey, maxRetries: 0 });
    const { data, request_id: requestId } = await client.chat.completions.create({ model: target.model, messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 8 }).withResponse();
    const result = await until('usage', WAIT_MS, async () => {
      const page = (await admin('GET', `/v1/organization/usage/completions?start_time=${Math.floor(Date.now() / 1_000) - 3_600}&bucket_width=1h&request_id=${requestId}`)) as { data: { results: { input_tokens: number; output_tokens: number; num_model_requests: number }[] }[] };
      return page.data.flatMap((bucket) => bucket.results)[0];
    });
    expect(result).toMatchObject({ input_tokens: data.usage?.prompt_tokens, output_tokens: data.usage?.completion_tokens, num_model_requests: 1 });
    const { data: events } = (await admin('GET', '/admin/v1/events?context=usage&limit=1000')) as { data: { type: string; correlation_id: string; data: { records: { requestId: string; replicaId: string }[] } }[] };
    const event = events.find((candidate) => candidate.data.records.some((record) => record.requestId === requestId));
    const record = event?.data.records.find((candidate) => candidate.requestId === requestId);
    expect(event).toMatchObject({ type: 'usage.recorded.v2' });
    const { data: replicaEvents } = (await admin('GET', `/admin/v1/events?context=fleet&aggregate=replica&id=${record?.replicaId}`)) as { data: { type: string }[] };
    expect(replicaEvents.map((candidate) => candidate.type)).toEqual(['replica.placed.v2', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.advanced.v1', 'replica.ready.v1']);
  });

  test('an idle endpoint is scaled to zero, and the next request starts it once and is answered', async () => {
    const deployed = (await admin('POST', '/v1/models/deploy', { model_name: 'sleeper', model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: 0 }, scaling: { scale_to_zero: true, scale_to_zero_after_idle_seconds: 2 } })) as { endpoint_id: string };
    const client = new OpenAI6({ baseURL: targets[0]!.baseUrl, apiKey: targets[0]!.apiKey, maxRetries: 0 });
    const ask = () => client.chat.completions.create({ model: 'sleeper', messages: [{ role: 'user', content: 'Good morning.' }], max_tokens: 4 });
    const rules = async (): Promise<string[]> => {
      const { data } = (await admin('GET', `/admin/v1/events?context=scaling&aggregate=endpoint-scale&id=${deployed.endpoint_id}`)) as { data: { data: { rule: string } }[] };
      return data.map((event) => event.data.rule);
    };
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    expect(answers.every((answer) => answer.choices[0]?.message.content !== '')).toBe(true);
    expect(await rules()).toEqual(['wake']);
    await until('scaled to zero', WAIT_MS, async () => ((await rules()).at(-1) === 'idle' ? true : undefined));
    // Until it drains, the last replica still answers; asked for is what happens without one.
    await until('the last replica stopped', WAIT_MS, async () => {
      const { replicas } = (await admin('GET', '/admin/v1/fleet')) as { replicas: { endpointId: string }[] };
      return replicas.some((replica) => replica.endpointId === deployed.endpoint_id) ? undefined : true;
    });
    expect((await ask()).usage?.completion_tokens).toBe(4);
    expect((await rules()).slice(0, 3)).toEqual(['wake', 'idle', 'wake']);
  });

  test('a reservation keeps replicas that nobody asks for, until it is released; a plan changes nothing', async () => {
    const { endpoint_id: endpointId } = (await admin('POST', '/v1/models/deploy', { model_name: 'promised', model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: 0 }, scaling: { scale_to_zero: true, scale_to_zero_after_idle_seconds: 1 } })) as { endpoint_id: string };
    const ready = async (): Promise<number> => ((await admin('GET', '/admin/v1/fleet')) as { replicas: { endpointId: string; phase: string }[] }).replicas.filter((replica) => replica.endpointId === endpointId && replica.phase === 'ready').length;
    const made = (await admin('POST', '/admin/v1/reservations', { endpoint: 'promised', replicas: 2 })) as { reservationId: string };
    await until('the promised replicas are there', WAIT_MS, async () => ((await ready()) === 2 ? true : undefined));
    const plan = (await admin('POST', '/admin/v1/plans', { nodes: { add: ['4xH100'] } })) as { plan: { fits: boolean; after: { gpus: number } } };
    expect(plan.plan).toMatchObject({ fits: true, moves: [], after: { gpus: 5 } });
    await expect(admin('POST', '/admin/v1/reservations', { endpoint: 'promised', requests_per_s: 5 })).rejects.toThrow(/409 .*missing: weightBytes.*reservation_refused/);
    const listed = (await admin('GET', '/admin/v1/reservations?include_ended=true')) as { data: { reservationId: string; status: string }[] };
    expect(listed.data.map(({ status }) => status).sort()).toEqual(['in-force', 'refused']);
    expect(await runCli(platform, 'reservations', 'ls')).toMatch(new RegExp(`${made.reservationId}\\s+in-force`));
    expect(await runCli(platform, 'plan', 'nodes', '--add', '4xH100')).toContain('It fits. Nothing was changed.');
    expect(await runCli(platform, 'deploy', 'two-at-once', 'sim://', '--engine', 'engine-sim', '--min-replicas', '2', '--no-wait')).toContain('for two-at-once');
    await admin('DELETE', `/admin/v1/reservations/${made.reservationId}`);
    await until('the replicas are given up', WAIT_MS, async () => ((await ready()) === 0 ? true : undefined));
  });

  test('a request told twice under one Idempotency-Key runs once, and is counted once', async () => {
    const target = targets[1]!;
    const ask = (): Promise<Response> => fetch(`${target.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${target.apiKey}`, 'content-type': 'application/json', 'idempotency-key': 'told-twice' },
      body: JSON.stringify({ model: target.model, messages: [{ role: 'user', content: 'Only once.' }], max_tokens: 4 }),
    });
    const first = await ask();
    const second = await ask();
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(await second.json()).toEqual(await first.json());
    const { data } = (await admin('GET', '/admin/v1/events?context=usage&limit=1000')) as { data: { type: string; data: unknown }[] };
    const ids = [first, second].map((answer) => answer.headers.get('x-request-id'));
    expect(data.flatMap(usageRecordsOf).filter(({ requestId }) => ids.includes(requestId)).length).toBeLessThanOrEqual(1);
  });

  test('every projection can be rebuilt from the first event to the same bytes', async () => {
    const result = (await admin('POST', '/admin/v1/replay/verify', {})) as { identical: boolean; projections: { name: string; rows: number }[]; unavailable: string[] };
    expect(result).toMatchObject({ identical: true, unavailable: [] });
    expect(result.projections.map((projection) => projection.name).sort()).toEqual(['batch', 'fleet', 'metering', 'metering.usage_clickhouse', 'registry', 'scaling']);
    expect(result.projections.every((projection) => projection.rows > 0)).toBe(true);
  });

  test('each service says that it is ready and has metrics of its own', async () => {
    for (const [name, service] of platform.services) {
      expect({ name, status: (await fetch(`${service.url}/readyz`)).status }).toEqual({ name, status: 200 });
      expect(await (await fetch(`${service.url}/metrics`)).text()).toContain(`service="${name}"`);
    }
  });

  test('no prompt, answer, key or secret is in the log or in the events', async () => {
    const canary = 'canary-7c1f';
    const client = new OpenAI6({ baseURL: targets[0]!.baseUrl, apiKey: targets[0]!.apiKey, maxRetries: 0 });
    await client.chat.completions.create({ model: targets[1]!.model, messages: [{ role: 'user', content: canary }], max_tokens: 4 });
    const log = await readFile(platform.instance.path('logs', 'penstock.log'), 'utf8');
    const events = JSON.stringify(await Promise.all(['access', 'registry', 'fleet', 'usage', 'batch'].map((context) => admin('GET', `/admin/v1/events?context=${context}&limit=1000`))));
    for (const secret of [canary, targets[0]!.apiKey, ...Object.values(platform.instance.secrets)]) {
      expect(log.includes(secret)).toBe(false);
      expect(events.includes(secret)).toBe(false);
    }
    expect((await stat(platform.instance.path('secrets.json'))).mode & 0o077).toBe(0);
  });

  test('data survives a restart: model, keys and usage are there, and nothing is pulled again', async () => {
    const before = (await admin('GET', '/admin/v1/keys')) as { data: { id: string }[] };
    await platform.close();
    platform = await start();
    const pulls: string[] = [];
    const model = await deployFirstModel({ environment: operatorEnvironment(platform.settings), randomModelPath: join(folder, 'random.gguf'), onPull: (file) => pulls.push(file) });
    expect(pulls).toEqual([]);
    expect(await admin('GET', '/admin/v1/keys')).toEqual(before);
    const client = new OpenAI6({ baseURL: `${platform.url}/v1`, apiKey: targets[0]!.apiKey, maxRetries: 0 });
    expect((await client.chat.completions.create({ model: model.name, messages: [{ role: 'user', content: 'Hello again.' }], max_tokens: 4 })).usage?.completion_tokens).toBeGreaterThan(0);
  }, START_LIMIT_MS);
});
