import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startStandalone, type Standalone } from '@penstock/infra-composition';
import { repositoryRoot } from '../contracts/files.js';
import { ChatClient } from '../platform/chat-client.js';
import { until } from '../platform/eventually.js';

const LIMIT_MS = 120_000;
const WAIT_MS = 40_000;
const WALKABLE = 0o711;
const SLOTS = 4;
const ANSWER_TOKENS = 60;
/** Of each request, so that none can have more than this. */
const TOKENS_PER_S = 200;

interface PlanAnswer {
  readonly requests_per_s: number;
  readonly profiles: readonly { readonly kvTokens: { readonly from: string } | null; readonly knee: { readonly concurrency: number; readonly requestsPerS: number; readonly ttftMs: number; readonly itlMs: number; readonly from: string; readonly source: string } | null }[];
}

interface MeasuredCurve {
  readonly curve: readonly { readonly concurrency: number; readonly promptTokens: number; readonly completionTokens: number }[];
}

const root = repositoryRoot(join(import.meta.dirname, 'x'));
let folder: string;
let platform: Standalone;

beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'tools/build.mjs'), 'apps/engine-sim'], { cwd: root });
  folder = await mkdtemp(join(tmpdir(), 'penstock-measured-'));
  await chmod(folder, WALKABLE);
  platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, environment: { ...process.env, TELEMETRY_INTERVAL_MS: '50', PROFILE_INTERVAL_MS: '500' } });
}, LIMIT_MS);

afterAll(async () => {
  await platform.close();
  await rm(folder, { recursive: true, force: true });
}, LIMIT_MS);

async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
  const response = await fetch(`${platform.url}${path}`, { method, headers: { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

test('what an engine does under load is measured while it serves, and a plan rests on it and says so', async () => {
  await ask('POST', '/v1/models/deploy', {
    model_name: 'measured', model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: 1, max_replicas: 1 }, serving: { slots_per_replica: SLOTS, context_tokens: 2_048 },
    engine_options: { tokens_per_second: TOKENS_PER_S, prefill_ms: 10 },
  });
  const { key } = (await ask('POST', '/admin/v1/keys', { name: 'load' })) as { key: string };
  const client = new ChatClient();
  const load = { isWanted: true };
  const answered = { count: 0 };
  const clients = Array.from({ length: SLOTS }, async () => {
    while (load.isWanted) if ((await client.ask({ url: platform.url, key, model: 'measured', content: 'How much can you do?', tokensMax: ANSWER_TOKENS })).status === 200) answered.count += 1;
  });
  try {
    const measured = await until('a measured curve', WAIT_MS, async () => {
      const { data } = (await ask('GET', '/admin/v1/events?context=fleet&aggregate=replica-profile&limit=100')) as { data: { data: MeasuredCurve }[] };
      return data.flatMap((event) => event.data.curve).find((point) => point.concurrency === SLOTS);
    });
    expect(Math.abs(measured.completionTokens - ANSWER_TOKENS)).toBeLessThan(ANSWER_TOKENS / 4);
    const plan = await until('a plan that rests on it', WAIT_MS, async () => {
      const answer = (await ask('POST', '/admin/v1/plans', { deployment: { model: 'measured', prompt_tokens: measured.promptTokens, completion_tokens: measured.completionTokens } })) as PlanAnswer;
      return answer.profiles.some(({ knee }) => knee !== null) ? answer : undefined;
    });
    expect(plan.profiles).toMatchObject([{ kvTokens: { from: 'measured' }, knee: { from: 'measured', source: expect.stringMatching(/^replica rep_\S+, median of \d+ looks$/) } }]);
    const knee = plan.profiles[0]?.knee;
    expect(knee?.requestsPerS).toBeLessThanOrEqual((1.1 * SLOTS * TOKENS_PER_S) / measured.completionTokens);
    expect(plan.requests_per_s).toBe(knee?.requestsPerS);
  } finally {
    load.isWanted = false;
    await Promise.all(clients);
  }
  expect(answered.count).toBeGreaterThan(0);
}, LIMIT_MS);
