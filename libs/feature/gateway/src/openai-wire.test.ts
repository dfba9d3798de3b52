import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createBatch, getBatch } from '@penstock/contract-commands';
import { openAiErrorBody } from '@penstock/contract-http';
import OpenAI from 'openai';
import { answerAll, engineFrames, startStream } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';

/** Details of OpenAI's wire format that no client shows by itself. */
let world: World;
beforeAll(async () => {
  world = await startWorld();
  world.serveRouter();
});
afterAll(() => world.close());
beforeEach(() => {
  world.engines[0]!.behaviours = [answerAll];
});

const MODEL = 'public-model';
const ask = { model: MODEL, messages: [{ role: 'user', content: 'hü' }] };
const engineBody = () => world.engines[0]?.requests.at(-1)?.body;
const post = (path: string, body: string | Buffer, type = 'application/json') => world.fetch(path, { method: 'POST', key: world.key, body: body as NonNullable<RequestInit['body']>, headers: { 'content-type': type } });
const faultOf = async (response: Response) => ({ status: response.status, ...openAiErrorBody.parse(await response.json()).error });

describe('a body', () => {
  test.each([
    ['with a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(JSON.stringify(ask))]), 'application/json'],
    ['with a charset', JSON.stringify(ask), 'application/json; charset=utf-8'],
    ['of a type in capitals', JSON.stringify(ask), 'Application/JSON;Charset=UTF-8'],
    ['between blanks', `\n ${JSON.stringify(ask)}\r\n`, 'application/json'],
  ])('%s is read', async (_name, body, type) => {
    expect((await post('/v1/chat/completions', body, type)).status).toBe(200);
    expect(engineBody()).toMatchObject({ messages: ask.messages });
  });

  test.each([
    ['in another encoding', Buffer.from(JSON.stringify(ask), 'utf16le'), 'application/json; charset=utf-16', 400, 'invalid_json'],
    ['with something after it', `${JSON.stringify(ask)} x`, 'application/json', 400, 'invalid_json'],
    ['of another type', JSON.stringify(ask), 'text/plain', 415, 'unsupported_media_type'],
  ])('%s is refused', async (_name, body, type, status, code) => {
    expect(await faultOf(await post('/v1/chat/completions', body, type))).toMatchObject({ status, code, type: 'invalid_request_error', param: null });
  });
});

describe('fields of a chat', () => {
  const forwarded = {
    audio: { voice: 'a', format: 'wav' }, modalities: ['text'], function_call: 'auto', functions: [{ name: 'f' }], logit_bias: { 50_256: -100 }, logprobs: true, top_logprobs: 20, parallel_tool_calls: false, prediction: { type: 'content', content: 'x' },
    prompt_cache_retention: '24h', prompt_cache_options: {}, reasoning_effort: 'xhigh', verbosity: 'low', web_search_options: {}, moderation: {}, seed: -1, stop: ['a', 'b', 'c', 'd'], n: 1, top_k: 3, min_p: 0.1, own: { deep: [1, { x: null }] },
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } }, tools: [{ type: 'function', function: { name: 'f' } }, { type: 'custom', custom: { name: 'c' } }],
    tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
  };

  test('reach the engine as they came, whether we know them or not', async () => {
    expect((await world.chat(forwarded)).status).toBe(200);
    expect(engineBody()).toMatchObject(forwarded);
  });

  test('that are meant for the platform do not', async () => {
    const own = { metadata: { a: 'b' }, store: true, service_tier: 'auto', user: 'u', safety_identifier: 's', prompt_cache_key: 'k' };
    expect((await world.chat(own)).status).toBe(200);
    for (const field of Object.keys(own)) expect(engineBody()).not.toHaveProperty(field);
  });

  test('say the limit of the answer by its new name before the old one', async () => {
    await world.chat({ max_tokens: 9, max_completion_tokens: 2 });
    expect(engineBody()).toMatchObject({ max_tokens: 2, max_completion_tokens: 2 });
  });

  test('of messages may have every role, and null or nothing where an assistant called tools', async () => {
    const messages = [
      { role: 'developer', content: 'd' }, { role: 'system', content: [{ type: 'text', text: 's' }] }, { role: 'user', content: [{ type: 'text', text: 'u' }, { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{ "a" : 1.0 }' } }] }, { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 't' }] },
      { role: 'assistant', refusal: 'no' }, { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }, { role: 'function', name: 'f', content: 'r' },
    ];
    expect((await world.chat({ messages })).status).toBe(200);
    expect(engineBody()?.['messages']).toEqual(messages);
  });

  test.each([[true], [false]])('an error of the engine under status 200, before any token, is an answer with a status (enveloped: %p)', async (isEnveloped) => {
    const error = { message: 'no tools here', type: 'BadRequestError', param: null, code: 400 };
    world.engines[0]!.behaviours = [({ response }) => {
      startStream(response);
      response.end(`data: ${JSON.stringify(isEnveloped ? { error: { object: 'error', ...error } } : { object: 'error', ...error })}\n\n${engineFrames.done}`);
    }];
    expect(await faultOf(await world.chat({ stream: true }))).toMatchObject({ status: 400, code: 'request_rejected_by_engine', message: 'no tools here' });
  });

  test('several choices come one in each chunk, by their index', async () => {
    const chunk = (index: number, delta: object, finish: string | null = null) => `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason: finish }] })}\n\n`;
    world.engines[0]!.behaviours = [({ response }) => {
      startStream(response);
      response.end([chunk(1, { content: 'b' }), chunk(0, { content: 'a' }), chunk(1, { content: 'B' }, 'stop'), chunk(0, {}, 'length'), engineFrames.done].join(''));
    }];
    const chunks = (await readEvents(await world.chat({ stream: true, n: 2 }))).slice(0, -1).map((event) => JSON.parse(event) as OpenAI.ChatCompletionChunk);
    expect(chunks.map(({ choices: [choice] }) => [choice?.index, choice?.delta.role ?? choice?.delta.content ?? null, choice?.finish_reason])).toEqual([
      [1, 'assistant', null], [1, 'b', null], [0, 'assistant', null], [0, 'a', null], [1, 'B', null], [1, null, 'stop'], [0, null, 'length'],
    ]);
  });
});

describe('paths and methods', () => {
  test('a model whose name has slashes is found in either spelling', async () => {
    await expect(new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 }).models.retrieve('meta-llama/nope')).rejects.toMatchObject({ code: 'model_not_found', message: expect.stringContaining('`meta-llama/nope`') });
    expect(await faultOf(await world.fetch('/v1/models/meta-llama/nope', { key: world.key }))).toMatchObject({ status: 404, code: 'model_not_found', message: expect.stringContaining('`meta-llama/nope`') });
  });

  test('HEAD answers what GET would, without its body', async () => {
    const [head, get] = [await world.fetch('/v1/models', { method: 'HEAD', key: world.key }), await world.fetch('/v1/models', { key: world.key })];
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(Buffer.byteLength(await get.text())), '']);
    expect((await world.fetch('/v1/chat/completions', { method: 'HEAD', key: world.key })).headers.get('allow')).toBe('POST');
  });
});

describe('batches', () => {
  const create = (more: object) => post('/v1/batches', JSON.stringify({ input_file_id: 'file_1', endpoint: '/v1/responses', completion_window: '24h', ...more }));

  test('hand on what they were created with', async () => {
    let asked: unknown;
    world.commands.serve(createBatch, (request) => {
      asked = request;
      return { kind: 'refused', refusal: { code: 'file_not_found', message: 'No such File object: file_1', param: 'inputFileId' } };
    });
    expect(await faultOf(await create({ output_expires_after: { anchor: 'created_at', seconds: 3_600 }, metadata: { a: 'b' } }))).toMatchObject({ status: 404, code: 'file_not_found', param: 'input_file_id' });
    expect(asked).toMatchObject({ endpoint: '/v1/responses', outputExpiresAfterSeconds: 3_600, metadata: { a: 'b' } });
  });

  test.each([
    [{ endpoint: '/v1/rerank' }, 'endpoint'], [{ completion_window: '48h' }, 'completion_window'], [{ output_expires_after: { anchor: 'created_at', seconds: 1 } }, 'output_expires_after.seconds'], [{ output_expires_after: { anchor: 'used_at', seconds: 3_600 } }, 'output_expires_after.anchor'],
    [{ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [index, 'v'])) }, 'metadata'],
  ])('are refused with %j', async (more, param) => {
    expect(await faultOf(await create(more))).toMatchObject({ status: 400, param });
  });

  test.each(['batch_x', 'batch..x'])('that are not there are told by their id: %s', async (id) => {
    world.commands.serve(getBatch, ({ batchId }) => ({ kind: 'refused', refusal: { code: 'batch_not_found', message: `No batch found with id '${batchId}'.`, param: 'batch_id' } }));
    expect(await faultOf(await world.fetch(`/v1/batches/${id}`, { key: world.key }))).toMatchObject({ status: 404, code: 'batch_not_found', param: 'id', message: `No batch found with id '${id}'.` });
  });

  test.each(['limit=10001', 'limit=-1', 'limit=x'])('and files have limits on their lists: %s', async (query) => {
    for (const path of ['/v1/batches', '/v1/files']) expect(await faultOf(await world.fetch(`${path}?${query}`, { key: world.key }))).toMatchObject({ status: 400, param: 'limit' });
  });
});
