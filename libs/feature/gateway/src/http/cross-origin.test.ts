import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { startWorld, type World } from '../gateway-world-suite.js';

/** As the official client sends them from a browser. */
const CLIENT_HEADERS = ['authorization', 'content-type', 'openai-organization', 'openai-project', 'x-stainless-lang', 'x-stainless-retry-count', 'x-stainless-timeout', 'x-stainless-helper-method', 'idempotency-key'];
const ORIGIN = 'https://app.example';
let world: World;

const preflight = (path: string, headers: readonly string[] = CLIENT_HEADERS, method = 'POST') =>
  world.fetch(path, { method: 'OPTIONS', key: null, headers: { origin: ORIGIN, 'access-control-request-method': method, 'access-control-request-headers': headers.join(',') } });
const allowed = (response: Response) => response.headers.get('access-control-allow-origin');

describe('pages of any origin', () => {
  beforeAll(async () => {
    world = await startWorld();
    world.serveRouter();
  });
  afterAll(() => world.close());

  test.each(['/v1/chat/completions', '/chat/completions', '/v1/models/meta/llama', '/v1/files', '/v2/models/m/infer'])('may ask to send what clients send to %s', async (path) => {
    const response = await preflight(path);
    expect([response.status, allowed(response), response.headers.get('access-control-allow-credentials')]).toEqual([204, '*', null]);
    expect(response.headers.get('access-control-allow-headers')?.split(', ')).toEqual(CLIENT_HEADERS);
    expect(response.headers.get('access-control-allow-methods')).toMatch(/POST|DELETE/);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  });

  test('may read whole answers, streams and errors, and their request id', async () => {
    const headers = { origin: ORIGIN, authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
    const answers = [await world.chat({}, { headers }), await world.chat({ stream: true }, { headers }), await world.chat({ n: 0 }, { headers }), await world.fetch('/v1/models', { key: null, headers: { origin: ORIGIN } })];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400, 401]);
    for (const answer of answers) expect([allowed(answer), answer.headers.get('access-control-expose-headers')]).toEqual(['*', expect.stringContaining('x-request-id')]);
    await Promise.all(answers.map((answer) => answer.text()));
  });

  test.each(['/admin/v1/keys', '/metrics', '/livez', '/v1/nowhere'])('may read nothing of %s', async (path) => {
    expect([allowed(await preflight(path)), allowed(await world.fetch(path, { headers: { origin: ORIGIN } }))]).toEqual([null, null]);
  });

  test('are not let send what services say to each other, nor what is no header', async () => {
    expect((await preflight('/v1/models', ['x-penstock-internal', 'authorization', 'a b', 'x'.repeat(65)], 'GET')).headers.get('access-control-allow-headers')).toBe('authorization');
  });

  test('OPTIONS that asks for nothing is a method like any other', async () => {
    expect((await world.fetch('/v1/chat/completions', { method: 'OPTIONS', key: null })).status).toBe(405);
  });
});

describe('pages of some origins', () => {
  afterEach(() => world.close());

  test('are the only ones', async () => {
    world = await startWorld({ settings: { CORS_ORIGINS: `https://other.example, ${ORIGIN}` } });
    const response = await preflight('/v1/models');
    expect([allowed(response), response.headers.get('vary')]).toEqual([ORIGIN, 'Origin, Access-Control-Request-Headers']);
    expect(allowed(await world.fetch('/v1/models', { key: world.key, headers: { origin: 'https://evil.example' } }))).toBeNull();
  });

  test('may be none', async () => {
    world = await startWorld({ settings: { CORS_ORIGINS: '' } });
    expect([(await preflight('/v1/models')).status, allowed(await preflight('/v1/models'))]).toEqual([405, null]);
  });
});
