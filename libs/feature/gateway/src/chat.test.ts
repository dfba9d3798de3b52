import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { admitRequest, releaseLeases } from '@penstock/contract-commands';
import { eventually } from '@penstock/testing-kit';
import OpenAI, { AuthenticationError, BadRequestError, NotFoundError } from 'openai';
import { answerAll, engineFrames, startStream, type EngineBehaviour } from './fake-engine-suite.js';
import { INTERNAL_TOKEN, readEvents, startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeEach(async () => {
  world = await startWorld({ engines: 2 });
  world.serveRouter();
});
afterEach(() => world.close());

const client = (apiKey = world.key) => new OpenAI({ apiKey, baseURL: `${world.url}/v1`, maxRetries: 0 });
const ask = { model: 'public-model', messages: [{ role: 'user' as const, content: 'hi' }], max_tokens: 4 };
const allRequests = () => world.engines.flatMap((engine) => engine.requests);
const everywhere = (...behaviours: EngineBehaviour[]) => {
  for (const engine of world.engines) engine.behaviours = behaviours;
};

describe('the official SDK', () => {
  test('gets a whole answer, and its usage is recorded to the token', async () => {
    const { data, response } = await client().chat.completions.create(ask).withResponse();
    expect(data).toMatchObject({ object: 'chat.completion', model: 'public-model', choices: [{ message: { role: 'assistant', content: 't0 t1 t2 t3 ' }, finish_reason: 'length' }], usage: { prompt_tokens: 5, completion_tokens: 4 } });
    expect(JSON.stringify(data)).not.toMatch(/inner|secret/);
    const requestId = response.headers.get('x-request-id');
    expect(requestId).toMatch(/^req_[0-9a-f]{32}$/);
    expect(['openai-version', 'openai-organization', 'openai-project', 'openai-processing-ms'].map((name) => response.headers.get(name))).toEqual(['2020-10-01', 'org_root', 'proj_root', expect.stringMatching(/^\d+$/)]);
    expect(allRequests()[0]?.headers).toMatchObject({ 'x-request-id': requestId, 'accept-encoding': 'identity' });
    expect(await world.usage(1)).toMatchObject([{ requestId, status: 'completed', stream: false, promptTokens: 5, completionTokens: 4, tokensEstimated: false, finishReason: 'length', endpointId: 'ep_1', httpStatus: 200 }]);
  });

  test('gets a stream with one identity, the role once, and usage because it asked', async () => {
    const stream = await client().chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.created} ${chunk.model}`)).size).toBe(1);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe('t0 t1 t2 t3 ');
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 4 } });
    expect(await world.usage(1)).toMatchObject([{ status: 'completed', stream: true, completionTokens: 4 }]);
  });

  test('is content in its strict helper', async () => {
    const final = await client().chat.completions.stream({ ...ask, stream: true }).finalChatCompletion();
    expect(final.choices[0]?.message.content).toBe('t0 t1 t2 t3 ');
  });

  test('lists and reads models', async () => {
    expect((await client().models.list()).data).toMatchObject([{ id: 'public-model', object: 'model', owned_by: 'penstock' }]);
    expect(await client().models.retrieve('public-model')).toMatchObject({ id: 'public-model' });
  });

  test('throws its typed errors', async () => {
    await expect(client('sk-ps-wrong').chat.completions.create(ask)).rejects.toThrow(AuthenticationError);
    await expect(client().chat.completions.create({ ...ask, model: 'nope' })).rejects.toMatchObject({ constructor: NotFoundError, code: 'model_not_found', param: null });
    await expect(client().models.retrieve('no/such/model')).rejects.toThrow(NotFoundError);
    await expect(client().chat.completions.create({ ...ask, messages: [] })).rejects.toMatchObject({ constructor: BadRequestError, code: 'empty_array', param: 'messages', type: 'invalid_request_error' });
    await expect(client().chat.completions.create({ ...ask, max_tokens: 0 })).rejects.toMatchObject({ code: 'integer_below_min_value', param: 'max_tokens' });
    expect(allRequests()).toHaveLength(0);
  });
});

describe('a client that leaves', () => {
  const endless: EngineBehaviour = ({ response }) => {
    startStream(response);
    response.write(engineFrames.role() + engineFrames.token(0) + engineFrames.token(1));
  };

  test.each<[string, EngineBehaviour, boolean, number]>([
    ['in the middle of a stream', endless, true, 2],
    ['before the first token', () => undefined, true, 0],
    ['while it waits for a whole answer', () => undefined, false, 0],
  ])('%s stops the engine and pays for what it got', async (_name, behaviour, stream, tokens) => {
    everywhere(behaviour);
    const abort = new AbortController();
    const answer = world.chat({ stream }, { signal: abort.signal });
    const [exchange] = await eventually(allRequests, (requests) => requests.length > 0);
    if (tokens > 0) await (await answer).body?.getReader().read();
    abort.abort();
    await answer.catch(() => undefined);
    await exchange?.aborted;
    expect(await world.usage(1)).toMatchObject([{ status: 'aborted', httpStatus: 499, errorCode: 'client_disconnected', completionTokens: tokens, tokensEstimated: true }]);
    await eventually(() => world.commands.sent.filter(({ subject }) => subject === releaseLeases.subject), (sent) => sent.length === 1);
    expect(world.commands.sent.find(({ subject }) => subject === releaseLeases.subject)?.request).toMatchObject({ releases: [{ outcome: 'aborted' }] });
  });

  test('while the router holds its request gives its place back', async () => {
    let admitted: AbortSignal | undefined;
    world.commands.serve(admitRequest, async (_request, options) => {
      admitted = options.signal;
      await new Promise((resolve) => options.signal?.addEventListener('abort', resolve));
      return { kind: 'refused', refusal: { code: 'queue_timeout', message: 'late' } };
    });
    const abort = new AbortController();
    const answer = world.chat({ stream: true }, { signal: abort.signal }).catch(() => undefined);
    await eventually(() => admitted, (signal) => signal !== undefined);
    abort.abort();
    await answer;
    await eventually(() => admitted?.aborted, (aborted) => aborted === true);
    expect(await world.usage(1)).toMatchObject([{ completionTokens: 0, replicaId: null }]);
  });
});

describe('an engine that fails', () => {
  test('before its first token is replaced by another one', async () => {
    const [first, second] = world.engines;
    if (first === undefined || second === undefined) throw new Error('two engines');
    first.behaviours = [({ response }) => void response.socket?.destroy()];
    second.behaviours = [answerAll];
    for (let index = 0; index < 4; index += 1) expect((await world.chat({ stream: true })).status).toBe(200);
    expect((await world.usage(4)).map((record) => [record.status, record.replicaId])).toEqual(Array.from({ length: 4 }, () => ['completed', 'rep_1']));
    expect(first.requests.length).toBeGreaterThan(0);
  });

  test('everywhere is an error with a status, before anything was sent', async () => {
    everywhere(({ response }) => void response.writeHead(500).end('Traceback: /secret/path'));
    const response = await world.chat({ stream: true });
    expect([response.status, response.headers.get('x-should-retry'), response.headers.get('retry-after')]).toEqual([502, 'true', '1']);
    expect(await response.json()).toEqual({ error: { message: expect.not.stringContaining('secret'), type: 'server_error', param: null, code: 'replica_failed' } });
    expect(allRequests()).toHaveLength(2);
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', httpStatus: 502, errorCode: 'replica_failed', completionTokens: 0 }]);
  });

  test.each<[string, EngineBehaviour, string]>([
    ['dies', ({ response }) => {
      startStream(response);
      response.write(engineFrames.role() + engineFrames.token(0) + engineFrames.token(1), () => response.socket?.destroy());
    }, 'engine_response_invalid'],
    ['reports an error and then [DONE]', ({ response }) => {
      startStream(response);
      response.end(`${engineFrames.role()}${engineFrames.token(0)}${engineFrames.token(1)}data: {"error": {"message": "EngineCore encountered an issue. See stack trace", "type": "InternalServerError", "param": null, "code": 500}}\n\n${engineFrames.done}`);
    }, 'replica_failed'],
    ['ends without a finish', ({ response }) => {
      startStream(response);
      response.end(engineFrames.role() + engineFrames.token(0) + engineFrames.token(1) + engineFrames.done);
    }, 'engine_response_invalid'],
  ])('after the first token (it %s) is an error event, and what came is billed', async (_name, behaviour, code) => {
    everywhere(behaviour);
    const response = await world.chat({ stream: true });
    expect(response.status).toBe(200);
    const events = await readEvents(response);
    expect(events.at(-1)).toBe('[DONE]');
    expect(JSON.parse(events.at(-2) ?? '')).toEqual({ error: { message: expect.any(String), type: 'server_error', param: null, code } });
    expect(events.join()).not.toMatch(/EngineCore|"finish_reason":"/);
    expect(allRequests()).toHaveLength(1);
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', completionTokens: 2, promptTokens: 5, errorCode: code, tokensEstimated: true }]);
  });

  test('a refusal of the engine is told in its words, without the inner name, and not tried elsewhere', async () => {
    everywhere(({ response }) => void response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: 'inner-model cannot do tools', type: 'BadRequestError', param: null, code: 400 } })));
    const response = await world.chat({});
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message: 'public-model cannot do tools', code: 'request_rejected_by_engine' } });
    expect(allRequests()).toHaveLength(1);
  });

  test('a connection that the engine had closed is replaced without a second replica', async () => {
    expect((await world.chat({})).status).toBe(200);
    expect((await world.chat({})).status).toBe(200);
    everywhere(({ response }) => void response.socket?.resetAndDestroy(), answerAll);
    expect((await world.chat({})).status).toBe(200);
    expect(allRequests()).toHaveLength(4);
    expect(world.commands.sent.filter(({ subject }) => subject === admitRequest.subject)).toHaveLength(3);
  });
});

describe('without a router', () => {
  beforeEach(() => {
    world.commands.withdraw(admitRequest);
    world.commands.withdraw(releaseLeases);
  });

  test('warm models answer, over both replicas', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => world.chat({ stream: true }).then(readEvents)));
    for (const events of answers) expect(events.at(-1)).toBe('[DONE]');
    expect(world.engines.map((engine) => engine.requests.length)).toEqual([3, 3]);
  });

  test('a replica that fails is left alone after a few requests, and none of their clients sees it', async () => {
    const [broken, sound] = world.engines;
    if (broken === undefined || sound === undefined) throw new Error('two engines');
    broken.behaviours = [({ response }) => void response.writeHead(500).end()];
    for (let index = 0; index < 40; index += 1) expect((await world.chat({})).status).toBe(200);
    expect([broken.requests.length, sound.requests.length]).toEqual([5, 40]);
  });

  test('no replica gets more than its slots', async () => {
    everywhere(({ response }) => {
      startStream(response);
      response.write(engineFrames.role() + engineFrames.token(0));
    });
    const abort = new AbortController();
    const running = await Promise.all(Array.from({ length: 8 }, () => world.chat({ stream: true }, { signal: abort.signal })));
    const refused = await world.chat({ stream: true });
    expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([429, 'queue_full']);
    expect(world.engines.map((engine) => engine.requests.length)).toEqual([4, 4]);
    abort.abort();
    await Promise.all(running.map((response) => response.text().catch(() => undefined)));
  });
});

describe('a call of the batch service', () => {
  const internal = (token: string) => ({
    headers: { 'x-penstock-internal': token, 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_t', projectId: 'proj_t', keyId: 'key_t', batchId: 'batch_1' }), 'x-penstock-request-id': 'req_of_the_batch_line' },
  });

  test('counts for its tenant under its request id', async () => {
    const response = await world.chat({}, internal(INTERNAL_TOKEN));
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, 'req_of_the_batch_line']);
    expect(await world.usage(1)).toMatchObject([{ requestId: 'req_of_the_batch_line', organisationId: 'org_t', keyId: 'key_t', batchId: 'batch_1' }]);
  });

  test('stops when its key is revoked, and goes on when its key merely expires', async () => {
    const make = async (body: object) => (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', ...body }) })).json() as Promise<{ id: string; key: string }>;
    const callOf = (keyId: string) => world.chat({}, { headers: { 'x-penstock-internal': INTERNAL_TOKEN, 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId, batchId: 'batch_1' }) } });
    const [leaked, short] = [await make({}), await make({ expires_at: new Date(Date.now() + 300).toISOString() })];
    expect((await callOf(leaked.id)).status).toBe(200);
    await world.fetch(`/admin/v1/keys/${leaked.id}`, { method: 'DELETE' });
    const refused = await callOf(leaked.id);
    expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: 'insufficient_permissions', message: expect.stringContaining('was revoked') } }]);
    await eventually(async () => (await world.fetch('/v1/models', { key: short.key })).status, (status) => status === 401);
    expect((await callOf(short.id)).status).toBe(200);
  });

  test('may call what its key may call, and no more', async () => {
    const { id } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'k', models: ['another-model'] }) })).json() as { id: string };
    const headers = { 'x-penstock-internal': INTERNAL_TOKEN, 'x-penstock-tenant': JSON.stringify({ organisationId: 'org_root', projectId: 'proj_root', keyId: id, batchId: 'batch_1' }) };
    expect((await world.chat({}, { headers })).status).toBe(404);
  });

  test('with a wrong token is an ordinary call of whoever holds the key', async () => {
    const response = await world.chat({}, { headers: { ...internal('wrong-token').headers, authorization: `Bearer ${world.key}` } });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).not.toBe('req_of_the_batch_line');
    expect(await world.usage(1)).toMatchObject([{ organisationId: 'org_root', batchId: null }]);
    expect((await world.fetch('/v1/chat/completions', { method: 'POST', key: null, body: '{}', ...internal('wrong-token') })).status).toBe(401);
  });
});
