import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openAiErrorBody } from '@penstock/contract-http';
import { usageRecordsOf } from '@penstock/domain-usage';
import { startStandalone, type Standalone } from '@penstock/infra-composition';
import { repositoryRoot } from '../contracts/files.js';
import { ChatClient, type ChatOutcome } from '../platform/chat-client.js';
import { until } from '../platform/eventually.js';
import { runCli } from '../platform/run-cli.js';

const LIMIT_MS = 120_000;
const WAIT_MS = 40_000;
const WALKABLE = 0o711;
const TURNS = 10;

interface Replica {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly phase: string;
  readonly url: string;
}

const root = repositoryRoot(join(import.meta.dirname, 'x'));
const client = new ChatClient();
let folder: string;
let platform: Standalone;
let key: string;

beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim', 'apps/cli'], { cwd: root });
  folder = await mkdtemp(join(tmpdir(), 'penstock-adapters-'));
  await chmod(folder, WALKABLE);
  platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, environment: { ...process.env, TELEMETRY_INTERVAL_MS: '100' } });
  ({ key } = (await get('/admin/v1/keys', { name: 'adapters' })) as { key: string });
}, LIMIT_MS);

afterAll(async () => {
  await platform.close();
  await rm(folder, { recursive: true, force: true });
}, LIMIT_MS);

async function get(path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${platform.url}${path}`, { method: body === undefined ? 'GET' : 'POST', headers: { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const ask = (model: string): Promise<ChatOutcome> => client.ask({ url: platform.url, key, model, content: 'Which adapter are you?', tokensMax: 4 });

/** Replicas that served each model, by the records of usage. */
async function replicasByModel(): Promise<ReadonlyMap<string, ReadonlySet<string | null>>> {
  const { data } = (await get('/admin/v1/events?context=usage&limit=1000')) as { data: { type: string; data: unknown }[] };
  const records = data.flatMap(usageRecordsOf);
  return new Map([...Map.groupBy(records, ({ modelName }) => modelName)].map(([name, own]) => [name, new Set(own.map(({ replicaId }) => replicaId))]));
}

test('adapters are deployed by the command line, called as models, and stay at one replica each', async () => {
  await runCli(platform, 'deploy', 'tuned', 'sim://', '--engine', 'engine-sim', '--min-replicas', '2', '--slots', '8', '--adapter', 'sql', '--adapter', 'support=sim://');
  const ready = await until('two replicas', WAIT_MS, async () => {
    const { replicas } = (await get('/admin/v1/fleet')) as { replicas: Replica[] };
    const own = replicas.filter(({ phase }) => phase === 'ready');
    return own.length === 2 ? own : undefined;
  });
  const { data: listed } = (await get('/v1/models')) as { data: { id: string; parent?: string }[] };
  expect(listed.filter(({ id }) => id.startsWith('tuned')).map(({ id, parent }) => [id, parent])).toEqual([['tuned', undefined], ['tuned:sql', 'tuned'], ['tuned:support', 'tuned']]);
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const model of ['tuned:sql', 'tuned:support']) {
      const outcome = await ask(model);
      expect([outcome.status, (JSON.parse(outcome.text) as { model: string }).model]).toEqual([200, model]);
    }
  }
  const served = await until('all usage', WAIT_MS, async () => {
    const found = await replicasByModel();
    return found.has('tuned:sql') && found.has('tuned:support') ? found : undefined;
  });
  expect([served.get('tuned:sql')?.size, served.get('tuned:support')?.size]).toEqual([1, 1]);
  expect(openAiErrorBody.parse(JSON.parse((await ask('tuned:other')).text)).error).toMatchObject({ code: 'model_not_found', message: expect.stringContaining('`tuned:sql`, `tuned:support`') });

  // An engine that runs already is asked what it serves: an adapter that it has not got is refused before it is asked for it.
  await runCli(platform, 'deploy', 'outside', `attach+${ready[0]?.url}`, '--engine', 'vllm', '--adapter', 'sql', '--adapter', 'absent');
  expect((await ask('outside:sql')).status).toBe(200);
  const refused = await until('the engine\'s word', WAIT_MS, async () => {
    const { status, text } = await ask('outside:absent');
    return status === 503 ? text : undefined;
  });
  expect(openAiErrorBody.parse(JSON.parse(refused)).error).toMatchObject({ code: 'model_loading', message: expect.stringContaining('serves the adapter absent') });
}, LIMIT_MS);
