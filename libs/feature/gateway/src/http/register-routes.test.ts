import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { routes } from '@penstock/contract-http';
import type { UsageOutbox } from '@penstock/domain-usage';
import { silentLogger } from '@penstock/kernel';
import Fastify, { type FastifyInstance } from 'fastify';
import type { StoredExchange } from '../stored/stored-exchange.js';
import type { CallerCheck } from './caller.js';
import { gatewayConfig } from '../gateway-config.js';
import { GatewayMetrics } from '../gateway-metrics.js';
import type { LoadGuard } from './load-guard.js';
import { registerRoutes } from './register-routes.js';
import { onRoute } from './route-call.js';

let instance: FastifyInstance;
let isBusy = false;

beforeAll(async () => {
  instance = Fastify();
  const handlers = routes.map((contract) => onRoute(`${contract.method} ${contract.path}`, () => Promise.resolve({ ok: true }), { readsBody: true, ...(contract.callsModel === true ? { direct: () => Promise.resolve() } : {}) }));
  await registerRoutes(instance, [{ handlers }], {
    config: gatewayConfig.parse({ ADMIN_KEY: 'a'.repeat(32), KEY_PEPPER: 'p'.repeat(32) }), metrics: new GatewayMetrics({ stats: () => ({ openRequests: 0, unpublished: 0, bytes: 0, bytesMax: 1 }) } as UsageOutbox), logger: silentLogger, isDraining: () => false,
    callers: { identify: () => ({ principal: {}, batchId: null }) } as unknown as CallerCheck,
    stored: { takes: () => false } as unknown as StoredExchange,
    guard: { mayTake: () => !isBusy } as LoadGuard,
  });
});
afterAll(() => instance.close());

test('a gateway that is as busy as it may be turns requests to models away on the way of unusual requests too, and answers all others', async () => {
  const ask = (method: 'GET' | 'POST', url: string) => instance.inject({ method, url, headers: { origin: 'https://page.example', 'content-type': 'application/json' }, ...(method === 'POST' ? { payload: '{}' } : {}) });
  expect((await ask('POST', '/v1/chat/completions')).statusCode).toBe(200);
  isBusy = true;
  const refused = await ask('POST', '/v1/chat/completions');
  expect(refused.json()).toMatchObject({ error: { code: 'queue_full' } });
  expect(Number(refused.headers['retry-after-ms'])).toBeGreaterThan(0);
  expect((await ask('GET', '/v1/models')).statusCode).toBe(200);
  isBusy = false;
});
