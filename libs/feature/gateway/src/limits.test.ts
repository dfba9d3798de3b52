import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { syncQuota } from '@penstock/contract-commands';
import { answerAll, engineFrames, startStream, type EngineBehaviour } from './fake-engine-suite.js';
import { startWorld, type World } from './gateway-world-suite.js';
import { formatDuration } from './limits/rate-headers.js';
import { serveQuota } from './quota-authority-suite.js';

let world: World;
let others: World[] = [];

beforeEach(async () => {
  world = await startWorld({ slots: 64 });
  world.serveRouter();
  serveQuota(world.commands);
});

afterEach(async () => {
  await Promise.all(others.map((other) => other.close()));
  others = [];
  await world.close();
});

async function limit(subjectId: string, limits: object, model: string | null = null): Promise<Response> {
  return world.fetch('/admin/v1/limits', { method: 'POST', body: JSON.stringify({ subject_id: subjectId, model, ...limits }) });
}

async function ownKeyId(): Promise<string> {
  const { data } = await (await world.fetch('/admin/v1/keys')).json() as { data: { id: string; name: string }[] };
  return data[0]?.id ?? '';
}

async function join(): Promise<World> {
  const other = await startWorld({ engines: 0, log: world.log, commands: world.commands });
  others.push(other);
  return other;
}

describe('limits', () => {
  test('on requests refuse the next one and say which, how much of it is used, and when to come back', async () => {
    const keyId = await ownKeyId();
    expect((await limit(keyId, { requests_per_minute: 2 })).status).toBe(200);
    const first = await world.chat({});
    expect(first.status).toBe(200);
    expect(first.headers.get('x-ratelimit-limit-requests')).toBe('2');
    expect(first.headers.get('x-ratelimit-remaining-requests')).toBe('1');
    expect(first.headers.get('ratelimit-policy')).toBe('"rpm";q=2;w=60');
    expect((await world.chat({})).status).toBe(200);
    const refused = await world.chat({});
    expect(refused.status).toBe(429);
    const { error } = await refused.json() as { error: { code: string; type: string; message: string } };
    expect(error).toMatchObject({ code: 'rate_limit_exceeded', type: 'requests' });
    expect(error.message).toMatch(new RegExp(`^Rate limit reached for all models in key ${keyId} on requests per minute: Limit 2, Used 2, Requested 1\\. Please try again in (1m)?[\\d.]+s\\.$`));
    expect(refused.headers.get('x-should-retry')).toBe('true');
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(50_000);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  });

  test('on tokens reserve what may be used, and give back what was not', async () => {
    await limit(await ownKeyId(), { tokens_per_minute: 200 });
    // Reserves the prompt's upper bound and 100; uses 5 + 3 by the engine's own count.
    for (let count = 0; count < 4; count += 1) expect((await world.chat({ max_tokens: 3 })).status).toBe(200);
    await world.usage(4);
    expect((await world.chat({ max_tokens: 100 })).status).toBe(200);
    const tooLarge = await world.chat({ max_tokens: 1_000 });
    expect(tooLarge.status).toBe(429);
    expect(await tooLarge.json()).toMatchObject({ error: { type: 'tokens', code: 'rate_limit_exceeded', message: expect.stringMatching(/^Request too large/) } });
    expect(tooLarge.headers.get('x-should-retry')).toBe('false');
  });

  test('on requests at once free a place as soon as one ends, however it ends', async () => {
    await limit(await ownKeyId(), { concurrency: 1 });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const slow: EngineBehaviour = async (exchange) => {
      startStream(exchange.response);
      exchange.response.write(engineFrames.role());
      await held;
      exchange.response.end(engineFrames.token(0) + engineFrames.finish(1) + engineFrames.usage(1) + engineFrames.done);
    };
    const engine = world.engines[0];
    if (engine === undefined) throw new Error('the world has an engine');
    engine.behaviours = [slow, answerAll];
    const first = await world.chat({ stream: true });
    const second = await world.chat({});
    expect(second.status).toBe(429);
    expect(await second.json()).toMatchObject({ error: { message: expect.stringContaining('concurrent requests: Limit 1, Used 1') } });
    release();
    await first.text();
    expect((await world.chat({})).status).toBe(200);
    engine.behaviours = [({ response }) => void response.writeHead(500).end('{}'), answerAll];
    expect((await world.chat({})).status).toBeGreaterThanOrEqual(500);
    expect((await world.chat({})).status).toBe(200);
  });

  test('hold over several gateways at once: never one more than the limit', async () => {
    await limit(await ownKeyId(), { requests_per_minute: 10 });
    const gateways = [world, await join(), await join(), await join()];
    const body = JSON.stringify({ model: 'public-model', messages: [{ role: 'user', content: 'hi' }] });
    const statuses = await Promise.all(Array.from({ length: 50 }, async (_, index) => {
      const response = await gateways[index % 4]?.fetch('/v1/chat/completions', { method: 'POST', key: world.key, body });
      await response?.arrayBuffer();
      return response?.status;
    }));
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(40);
  });

  test('on the context cut what a request may ask for, and refuse a prompt beyond it', async () => {
    await limit(await ownKeyId(), { context_tokens_max: 100 }, 'public-model');
    expect(await (await world.chat({ max_tokens: 101 })).json()).toMatchObject({ error: { code: 'integer_above_max_value', param: 'max_tokens' } });
    expect(await (await world.chat({ messages: [{ role: 'user', content: 'word '.repeat(200) }] })).json()).toMatchObject({ error: { code: 'context_length_exceeded' } });
    await world.chat({});
    const asked = world.engines[0]?.requests.at(-1)?.body['max_tokens'];
    expect(asked).toBeGreaterThan(50);
    expect(asked).toBeLessThan(100);
  });

  test('a caller under no limit asks nobody, and with no authority a gateway keeps to its share', async () => {
    await world.chat({});
    expect(world.commands.sent.some(({ subject }) => subject === syncQuota.subject)).toBe(false);
    world.commands.withdraw(syncQuota);
    await limit(await ownKeyId(), { requests_per_minute: 3 });
    const statuses = [];
    for (let count = 0; count < 5; count += 1) statuses.push((await world.chat({})).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
  });

  test('are shown, replaced and taken away; those of an organisation only by the operator', async () => {
    const created = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Acme' }) })).json() as { id: string };
    const projectId = `proj_${created.id.slice('org_'.length)}`;
    const { key: adminKey } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'a', kind: 'admin', project_id: projectId }) })).json() as { key: string };
    const asTenant = (subjectId: string, limits: object) => world.fetch('/admin/v1/limits', { method: 'POST', key: adminKey, body: JSON.stringify({ subject_id: subjectId, ...limits }) });
    expect((await asTenant(created.id, { concurrency: 9 })).status).toBe(403);
    expect((await asTenant('proj_root', { concurrency: 9 })).status).toBe(404);
    expect((await asTenant(projectId, { concurrency: 9 })).status).toBe(200);
    expect((await limit(created.id, { requests_per_minute: 5, priority_tier: 'paid' })).status).toBe(200);
    const show = async () => ((await (await world.fetch('/admin/v1/limits', { key: adminKey })).json()) as { data: object[] }).data;
    expect(await show()).toEqual([expect.objectContaining({ subject: 'project', concurrency: 9 }), expect.objectContaining({ subject: 'organisation', requests_per_minute: 5, priority_tier: 'paid' })]);
    await asTenant(projectId, {});
    expect(await show()).toEqual([expect.objectContaining({ subject: 'organisation' })]);
  });
});

test('durations are written as Go writes them', () => {
  expect([0, 6, 120, 1_000, 8_640, 390_000].map(formatDuration)).toEqual(['0s', '6ms', '120ms', '1s', '8.64s', '6m30s']);
});
