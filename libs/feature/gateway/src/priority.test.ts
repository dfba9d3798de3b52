import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { admitRequest } from '@penstock/contract-commands';
import type { LimitsSetV1 } from '@penstock/contract-events';
import { priorityClasses, rankOf } from '@penstock/domain-routing';
import fc from 'fast-check';
import { INTERNAL_TOKEN, startWorld, type World } from './gateway-world-suite.js';
import { priorityOf } from './limits/priority-of.js';

const limitsWith = (priorityTier: LimitsSetV1['limits']['priorityTier']): LimitsSetV1 => ({
  organisationId: 'org_1', subject: 'organisation', subjectId: 'org_1', model: null, limits: { requestsPerMinute: null, tokensPerMinute: null, concurrency: null, contextTokensMax: null, priorityTier },
});

test('no request rises above the tier of its caller', () => {
  fc.assert(fc.property(fc.constantFrom(null, ...priorityClasses), fc.oneof(fc.constantFrom('auto', 'default', 'flex', 'scale', 'priority', undefined, null), fc.string()), (tier, asked) => {
    const found = priorityOf([limitsWith(tier)], asked);
    expect(rankOf(found)).toBeGreaterThanOrEqual(rankOf(tier ?? 'paid'));
    if (asked === undefined || asked === null || asked === 'auto') expect(found).toBe(tier ?? 'paid');
  }));
  expect(priorityOf([limitsWith('reserved')], 'flex')).toBe('best-effort');
  expect(priorityOf([limitsWith('batch')], 'priority')).toBe('batch');
});

describe('the class in the router\'s queue', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
    world.serveRouter();
  });
  afterAll(() => world.close());

  const asked = () => world.commands.sent.filter(({ subject }) => subject === admitRequest.subject).map(({ request }) => (request as { priority: string }).priority).at(-1);
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    expect((await world.fetch(path, { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model', ...body }), headers })).status).toBe(200);
    return asked();
  };
  const messages = [{ role: 'user', content: 'hi' }];

  test('follows the tier that is set for the caller, whatever it asks the model for', async () => {
    expect(await post('/v1/chat/completions', { messages })).toBe('paid');
    expect((await world.fetch('/admin/v1/limits', { method: 'POST', body: JSON.stringify({ subject_id: 'org_root', priority_tier: 'reserved' }) })).status).toBe(200);
    expect(await post('/v1/chat/completions', { messages })).toBe('reserved');
    expect(await post('/v1/chat/completions', { messages, service_tier: 'priority' })).toBe('reserved');
    expect(await post('/v1/chat/completions', { messages, service_tier: 'flex' })).toBe('best-effort');
    expect(await post('/v1/responses', { input: 'hi', service_tier: 'default' })).toBe('paid');
    expect(await post('/v1/responses', { input: 'hi' })).toBe('reserved');
    const tenant = JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId: 'key_root', batchId: 'batch_1' });
    expect(await post('/v1/chat/completions', { messages, service_tier: 'priority' }, { 'x-penstock-internal': INTERNAL_TOKEN, 'x-penstock-tenant': tenant })).toBe('batch');
  });

  test('is one of OpenAI\'s words', async () => {
    const response = await world.chat({ service_tier: 'express' });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param: 'service_tier' } }]);
  });
});
