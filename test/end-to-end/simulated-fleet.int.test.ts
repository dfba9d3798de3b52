import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startStandalone, type Standalone } from '@penstock/infra-composition';
import { repositoryRoot } from '../contracts/files.js';
import { until } from '../platform/eventually.js';

const LIMIT_MS = 120_000;
const WAIT_MS = 30_000;
const WALKABLE = 0o711;
/** A thousand of the fleet's seconds pass in one of the test's. */
const TIME_SCALE = 0.001;
const ENGINES_MAX = 2;
const REPLICAS = 5;

interface FleetAnswer {
  readonly nodes: readonly { readonly nodeId: string; readonly status: string }[];
  readonly replicas: readonly { readonly replicaId: string; readonly phase: string; readonly url: string | null; readonly nodeId: string }[];
}

const root = repositoryRoot(join(import.meta.dirname, 'x'));
let folder: string;
let platform: Standalone;

beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim'], { cwd: root });
  folder = await mkdtemp(join(tmpdir(), 'penstock-fleet-'));
  await chmod(folder, WALKABLE);
  const description = join(folder, 'fleet.json');
  await writeFile(description, JSON.stringify({ nodes: [{ shape: 'hgx-8xH100-SXM', count: 2 }, { shape: 'l4-1x', count: 2 }], timeScale: TIME_SCALE }));
  platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, environment: { ...process.env, AGENT_DRIVER: 'simulated', SIMULATED_FLEET: description, SIMULATED_ENGINES_MAX: String(ENGINES_MAX) } });
}, LIMIT_MS);

afterAll(async () => {
  await platform.close();
  await rm(folder, { recursive: true, force: true });
}, LIMIT_MS);

async function ask(method: string, path: string, body?: unknown, key = platform.adminKey): Promise<unknown> {
  const response = await fetch(`${platform.url}${path}`, { method, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

test('an imagined fleet takes replicas, and answers through the gateway', async () => {
  const fleet = async () => (await ask('GET', '/admin/v1/fleet')) as FleetAnswer;
  expect((await until('the nodes', WAIT_MS, async () => ((await fleet()).nodes.length === 4 ? fleet() : undefined))).nodes.every((node) => node.status === 'up')).toBe(true);
  await ask('POST', '/v1/models/deploy', {
    model_name: 'imagined', model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: REPLICAS, max_replicas: REPLICAS }, serving: { slots_per_replica: 8, context_tokens: 2_048 },
    engine_options: { timing_model: 'h100-llama-3.1-8b' },
  });
  const ready = await until('ready replicas', WAIT_MS, async () => {
    const replicas = (await fleet()).replicas.filter((replica) => replica.phase === 'ready');
    return replicas.length === REPLICAS ? replicas : undefined;
  });
  expect(new Set(ready.map((replica) => replica.url)).size).toBe(ENGINES_MAX);
  const { key } = (await ask('POST', '/admin/v1/keys', { name: 'fleet' })) as { key: string };
  const answer = await ask('POST', '/v1/chat/completions', { model: 'imagined', messages: [{ role: 'user', content: 'Hello.' }], max_tokens: 5 }, key);
  expect(answer).toMatchObject({ object: 'chat.completion', usage: { completion_tokens: 5 } });
}, LIMIT_MS);
