import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { admitRequest, getRequestUsage } from '@penstock/contract-commands';
import { usageRecordedV1, type UsageRecord } from '@penstock/contract-events';
import { openAiErrorBody, ownLimits, requestExplanation } from '@penstock/contract-http';
import { startWorld, type World } from './gateway-world-suite.js';
import { serveQuota } from './quota-authority-suite.js';

let world: World;
beforeEach(async () => {
  world = await startWorld({ slots: 64 });
  world.serveRouter();
  serveQuota(world.commands);
});
afterEach(() => world.close());

const post = (path: string, body: object) => world.fetch(path, { method: 'POST', body: JSON.stringify(body) });

async function tenant(name: string): Promise<{ key: string; keyId: string; organisationId: string }> {
  const { id: organisationId } = await (await post('/admin/v1/organisations', { name })).json() as { id: string };
  const { key, id: keyId } = await (await post('/admin/v1/keys', { name, project_id: `proj_${organisationId.slice(4)}` })).json() as { key: string; id: string };
  return { key, keyId, organisationId };
}

const askAs = (key: string) => world.chat({ max_tokens: 2 }, { headers: { authorization: `Bearer ${key}` } });
const limitsOf = async (key: string) => ownLimits.parse(await (await world.fetch('/v1/limits', { key })).json());
const why = (id: string, key: string) => world.fetch(`/v1/requests/${id}`, { key });

describe('GET /v1/limits', () => {
  test('shows a key its own limits, how much is used, and when it may go on; and those of nobody else', async () => {
    const [one, two] = [await tenant('One'), await tenant('Two')];
    await post('/admin/v1/limits', { subject_id: one.organisationId, requests_per_minute: 10, priority_tier: 'best-effort', context_tokens_max: 1_000 });
    await post('/admin/v1/limits', { subject_id: one.keyId, model: 'public-model', requests_per_minute: 2 });
    const before = await limitsOf(one.key);
    expect(before.data.map(({ subject, model, name, limit, used, remaining, retry_after_ms: retry }) => ({ subject, model, name, limit, used, remaining, retry }))).toEqual([
      { subject: 'organisation', model: null, name: 'requests_per_minute', limit: 10, used: 0, remaining: 10, retry: 0 },
      { subject: 'key', model: 'public-model', name: 'requests_per_minute', limit: 2, used: 0, remaining: 2, retry: 0 },
    ]);
    expect(before).toMatchObject({ organisation_id: one.organisationId, key_id: one.keyId, priority_tier: 'best-effort', context_tokens_max: 1_000, models: { 'public-model': { priority_tier: 'best-effort', context_tokens_max: 1_000 } } });
    for (const status of [200, 200, 429]) expect((await askAs(one.key)).status).toBe(status);
    const after = await limitsOf(one.key);
    expect(after.data.map(({ used }) => used)).toEqual([2, 2]);
    expect(after.data[1]?.retry_after_ms).toBeGreaterThan(0);
    expect(after.data[1]?.retry_after_ms).toBeLessThanOrEqual(61_000);
    expect(await limitsOf(two.key)).toMatchObject({ data: [], organisation_id: two.organisationId, priority_tier: 'paid', models: {} });
  });
});

describe('a refusal', () => {
  test('names the limit with its numbers, and is explained again later, to its own tenant alone', async () => {
    const [one, two] = [await tenant('One'), await tenant('Two')];
    await post('/admin/v1/limits', { subject_id: one.keyId, requests_per_minute: 1 });
    expect((await askAs(one.key)).status).toBe(200);
    const refused = await askAs(one.key);
    const { error } = openAiErrorBody.parse(await refused.json());
    expect(error.limit).toEqual({ name: 'requests_per_minute', scope: `all models in key ${one.keyId}`, limit: 1, used: 1, requested: 1 });
    const id = refused.headers.get('x-request-id') ?? '';
    world.commands.serve(getRequestUsage, () => ({ kind: 'ok', value: { record: null } }));
    const told = requestExplanation.parse(await (await why(id, one.key)).json());
    expect(told).toMatchObject({ id, status: 'refused', http_status: 429, model: 'public-model', operation: 'chat', timings: null, replica_id: null, error: { code: 'rate_limit_exceeded', limit: error.limit } });
    expect(told.why).toEqual([expect.stringMatching(/^It ended with 429 rate_limit_exceeded: Rate limit reached/), expect.stringContaining('The limit was requests_per_minute'), expect.stringMatching(/^It could be sent again \d+ ms later\.$/)]);
    const foreign = await why(id, two.key);
    const unknown = await why('req_unknown', two.key);
    expect([foreign.status, await foreign.json()]).toEqual([404, await unknown.json()]);
  });

  test('by the router says how long the queue is', async () => {
    const limit = { name: 'queue', scope: 'requests that wait for the model; 4 of its 4 slots are taken', limit: 4, used: 4 };
    world.commands.serve(admitRequest, () => ({ kind: 'refused', refusal: { code: 'queue_full', message: 'Full.', retryAfterMs: 700, limit } }));
    const refused = await world.chat({});
    expect([refused.status, refused.headers.get('retry-after-ms'), openAiErrorBody.parse(await refused.json()).error.limit]).toEqual([429, '700', limit]);
  });
});

describe('GET /v1/requests/{request_id}', () => {
  const startedAt = new Date(Date.now() - 60_000).toISOString();
  const record: UsageRecord = { ...usageRecordedV1.schema.parse(usageRecordedV1.example), requestId: 'req_1', replicaId: 'rep_0', startedAt, queueMs: 120_000, durationMs: 121_000, engineMs: 900 };

  test('tells why a request was slow: here it waited for a start', async () => {
    const asked: unknown[] = [];
    const { key, organisationId } = await tenant('One');
    const own = { ...record, organisationId, projectId: `proj_${organisationId.slice(4)}` };
    world.commands.serve(getRequestUsage, (request) => {
      asked.push(request);
      return { kind: 'ok', value: { record: own } };
    });
    const told = requestExplanation.parse(await (await why('req_1', key)).json());
    expect(asked).toEqual([{ requestId: 'req_1', organisationId }]);
    expect(told).toMatchObject({ status: 'completed', error: null, replica_id: 'rep_0', node_id: null, timings: { queue_ms: 120_000, engine_ms: 900 }, cold_start: { ready_at: expect.any(Number) } });
    expect(told.why[0]).toMatch(/^It waited 120000 ms for a start: no replica was ready until /);
    expect(requestExplanation.parse(await (await why('req_1', 'admin-key-for-tests-0001')).json()).node_id).toBe('node_1');
  });

  test('a request of another project of the same organisation is nobody else\'s', async () => {
    const { key, organisationId } = await tenant('One');
    world.commands.serve(getRequestUsage, () => ({ kind: 'ok', value: { record: { ...record, organisationId, projectId: 'proj_other' } } }));
    expect((await why('req_1', key)).status).toBe(404);
  });

  test('is a 503 while the store is away and nothing is remembered', async () => {
    expect((await why('req_1', world.key)).status).toBe(503);
  });
});
