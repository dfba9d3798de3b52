import { afterEach, expect, test } from '@jest/globals';
import { admitRequest } from '@penstock/contract-commands';
import { eventually } from '@penstock/testing-kit';
import { engineFrames, startStream } from './fake-engine-suite.js';
import { secondsPerToken } from './gateway-metrics.js';
import { INTERNAL_TOKEN, startWorld, type World } from './gateway-world-suite.js';
import { serveQuota } from './quota-authority-suite.js';

let world: World;
afterEach(() => world.close());

async function start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  world = await startWorld({ slots: 64, settings });
  world.serveRouter();
  serveQuota(world.commands);
}

const lines = async (name: string) => (await (await fetch(`${world.url}/metrics`)).text()).split('\n').filter((line) => line.startsWith(name));
const ends = async () => Object.fromEntries((await lines('penstock_model_requests_total')).map((line) => [/code="(\w+)"/.exec(line)?.[1], Number(line.split(' ').at(-1))]));
const batchLine = { headers: { 'x-penstock-internal': INTERNAL_TOKEN, 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId: 'key_root', batchId: 'batch_1' }) } };

test('how the requests to a model ended can be read, refusals and clients that left included', async () => {
  await start();
  await (await world.chat({ stream: true, max_tokens: 8 })).text();
  await (await world.chat({})).text();
  const [engine] = world.engines;
  if (engine !== undefined) engine.behaviours = [({ response }) => {
    startStream(response);
    response.write(engineFrames.role() + engineFrames.token(0));
  }];
  const leaving = new AbortController();
  await world.chat({ stream: true }, { signal: leaving.signal });
  leaving.abort();
  await eventually(ends, (counts) => counts['client_disconnected'] === 1);
  world.commands.serve(admitRequest, () => ({ kind: 'refused', refusal: { code: 'queue_full', message: 'Full.', retryAfterMs: 700 } }));
  expect((await world.chat({})).status).toBe(429);
  await world.fetch('/admin/v1/limits', { method: 'POST', body: JSON.stringify({ subject_id: 'org_root', tokens_per_minute: 1 }) });
  expect((await world.chat({})).status).toBe(429);
  expect(await ends()).toEqual({ completed: 2, client_disconnected: 1, queue_full: 1, rate_limit_exceeded: 1 });
  // Two were answered, each with a prompt of five tokens.
  expect(await lines('penstock_prompt_tokens_sum')).toEqual([expect.stringMatching(/model="public-model".* 10$/)]);
  expect(await lines('gen_ai_server_time_per_output_token_seconds_count')).toEqual([expect.stringMatching(/model="public-model".* 1$/)]);
});

test('the time per token leaves out the first one, and says nothing of a single one', () => {
  expect(secondsPerToken({ durationMs: 1_100, ttftMs: 100, completionTokens: 11 })).toBeCloseTo(0.1);
  expect(secondsPerToken({ durationMs: 1_100, ttftMs: 100, completionTokens: 1 })).toBeUndefined();
  expect(secondsPerToken({ durationMs: 1_100, ttftMs: null, completionTokens: 5 })).toBeUndefined();
});

test('a gateway that is nearly full turns away batch jobs first, then best effort', async () => {
  await start({ REQUESTS_IN_FLIGHT_MAX: '10' });
  const [engine] = world.engines;
  if (engine !== undefined) engine.behaviours = [({ response }) => {
    startStream(response);
    response.write(engineFrames.role() + engineFrames.token(0));
  }];
  const leaving = new AbortController();
  const open = async (body: object = {}, init: RequestInit = {}) => (await world.chat({ stream: true, ...body }, { signal: leaving.signal, ...init })).status;
  for (let count = 0; count < 8; count += 1) expect(await open()).toBe(200);
  expect(await open({}, batchLine)).toBe(429);
  expect(await open({ service_tier: 'flex' })).toBe(200);
  expect(await open({ service_tier: 'flex' })).toBe(429);
  expect(await open()).toBe(200);
  const refused = await world.chat({});
  expect([refused.status, await refused.json()]).toMatchObject([429, { error: { code: 'queue_full', limit: { name: 'gateway_requests', limit: 10, used: 10 } } }]);
  leaving.abort();
});
