import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { admitRequest } from '@penstock/contract-commands';
import { embeddingList, moderationAnswer, responseObject, textCompletion } from '@penstock/contract-http';
import { eventually } from '@penstock/testing-kit';
import OpenAI, { BadRequestError, NotFoundError } from 'openai';
import { answerAll, startStream, type EngineBehaviour, type EngineExchange } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeEach(async () => {
  world = await startWorld({ engines: 2 });
  world.serveRouter();
});
afterEach(() => world.close());

const MODEL = 'public-model';
const client = () => new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 });
const requests = () => world.engines.flatMap((engine) => engine.requests);
const everywhere = (...behaviours: EngineBehaviour[]) => {
  for (const engine of world.engines) engine.behaviours = behaviours;
};
const post = (path: string, body: object) => world.fetch(path, { method: 'POST', key: world.key, body: JSON.stringify(body) });
const json = (value: unknown): EngineBehaviour => ({ response }) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

/** A completion as vLLM sends it: two tokens for each choice. */
const complete: EngineBehaviour = ({ body, response }) => {
  const count = typeof body['n'] === 'number' ? body['n'] : 1;
  const head = { id: 'cmpl-inner', object: 'text_completion', created: 1, model: 'inner-model' };
  const usage = { prompt_tokens: 3, total_tokens: 3 + 2 * count, completion_tokens: 2 * count };
  const logprobs = typeof body['logprobs'] === 'number' ? { text_offset: [0], token_logprobs: [-0.5], tokens: ['a'], top_logprobs: [{ a: -0.5 }] } : null;
  if (body['stream'] !== true) {
    const choices = Array.from({ length: count }, (_, index) => ({ index, text: 'a b', logprobs, finish_reason: 'length', stop_reason: null, token_ids: null }));
    return json({ ...head, choices, usage, system_fingerprint: 'vllm-secret', kv_transfer_params: null })({ body, response } as EngineExchange);
  }
  startStream(response);
  for (let index = 0; index < count; index += 1) {
    response.write(frame({ ...head, choices: [{ index, text: 'a', logprobs, finish_reason: null }], usage: { prompt_tokens: 3, total_tokens: 4, completion_tokens: 1 } }));
    response.write(frame({ ...head, choices: [{ index, text: ' b', logprobs: null, finish_reason: 'length', stop_reason: null }], usage: { prompt_tokens: 3, total_tokens: 5, completion_tokens: 2 } }));
  }
  response.end(`${frame({ ...head, choices: [], usage })}data: [DONE]\n\n`);
};

describe('completions', () => {
  beforeEach(() => everywhere(complete));

  test('are whole for the official SDK, and recorded', async () => {
    const answer = await client().completions.create({ model: MODEL, prompt: 'once', max_tokens: 2, logprobs: 1, seed: 7 });
    textCompletion.parse(answer);
    expect(answer).toMatchObject({ object: 'text_completion', model: MODEL, choices: [{ index: 0, text: 'a b', finish_reason: 'length', logprobs: { tokens: ['a'], text_offset: [0] } }], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } });
    expect(JSON.stringify(answer)).not.toMatch(/inner|secret|token_ids/);
    expect(requests()[0]).toMatchObject({ path: '/v1/completions', body: { model: 'inner-model', prompt: 'once', seed: 7, logprobs: 1 } });
    expect(await world.usage(1)).toMatchObject([{ operation: 'completions', stream: false, status: 'completed', promptTokens: 3, completionTokens: 2, tokensEstimated: false }]);
  });

  test('take several prompts of every kind, with choices numbered through', async () => {
    const answer = await client().completions.create({ model: MODEL, prompt: [[1, 2], [3]], n: 2, max_tokens: 2 });
    expect(answer.choices.map((choice) => choice.index)).toEqual([0, 1, 2, 3]);
    expect(answer.usage).toMatchObject({ prompt_tokens: 6, completion_tokens: 8 });
    expect(requests().map((request) => request.body['prompt'])).toEqual([[1, 2], [3]]);
    await client().completions.create({ model: MODEL, prompt: [5, 6, 7] });
    expect(requests().at(-1)?.body['prompt']).toEqual([5, 6, 7]);
  });

  test('stream with the finish reason on the last text, and usage once because it was asked for', async () => {
    const stream = await client().completions.create({ model: MODEL, prompt: ['x', 'y'], stream: true, stream_options: { include_usage: true } });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    for (const chunk of chunks) textCompletion.parse(chunk);
    expect(chunks.map((chunk) => chunk.choices[0]).map((choice) => choice && [choice.index, choice.text, choice.finish_reason])).toEqual([[0, 'a', null], [0, ' b', 'length'], [1, 'a', null], [1, ' b', 'length'], undefined]);
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1);
    expect(chunks.map((chunk) => chunk.usage ?? null)).toEqual([null, null, null, null, expect.objectContaining({ prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 })]);
    const plain = await readEvents(await post('/v1/completions', { model: MODEL, prompt: 'x', stream: true }));
    expect(plain.at(-1)).toBe('[DONE]');
    expect(plain.join('')).not.toMatch(/usage|inner/);
  });

  test.each([
    [{ prompt: 'x', best_of: 3 }, 'unsupported_value', 'best_of'],
    [{ prompt: 'x', suffix: 'y' }, 'unsupported_parameter', 'suffix'],
    [{ prompt: [] }, 'empty_array', 'prompt'],
    [{}, 'missing_required_parameter', 'prompt'],
    [{ prompt: 'x', logprobs: 6 }, 'integer_above_max_value', 'logprobs'],
    [{ prompt: 'x', max_tokens: 5_000 }, 'integer_above_max_value', 'max_tokens'],
  ])('refuse %j', async (body, code, param) => {
    const response = await post('/v1/completions', { model: MODEL, ...body });
    expect(await response.json()).toMatchObject({ error: { code, param } });
    expect(requests()).toHaveLength(0);
  });

  test('bring along neither another input nor what is meant for the platform', async () => {
    await client().completions.create({ model: MODEL, prompt: 'x', prompt_embeds: 'AAAA', messages: [], metadata: {}, store: true, top_k: 3 } as unknown as OpenAI.CompletionCreateParamsNonStreaming);
    expect(Object.keys(requests()[0]?.body ?? {}).sort()).toEqual(['cache_salt', 'max_tokens', 'model', 'prompt', 'stream', 'top_k']);
  });

  test.each([true, false])('of no tokens show none, whatever an engine needs to write (streamed: %p)', async (isStreamed) => {
    const response = await post('/v1/completions', { model: MODEL, prompt: 'once', max_tokens: 0, logprobs: 1, ...(isStreamed ? { stream: true } : {}) });
    const [chunk] = isStreamed ? (await readEvents(response)).slice(-2, -1).map((event) => JSON.parse(event) as unknown) : [await response.json()];
    expect(chunk).toMatchObject({ choices: [{ index: 0, text: '', logprobs: null, finish_reason: 'length' }] });
    expect(requests()[0]?.body).toMatchObject({ max_tokens: 1 });
    await post('/v1/completions', { model: MODEL, prompt: 'once', max_tokens: 0, echo: true });
    expect(requests().map(({ body }) => body).find((body) => body['echo'] === true)).toMatchObject({ max_tokens: 0 });
  });

  test('say of a prompt that is too long which field it came in', async () => {
    everywhere(({ response }) => void response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: `This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens`, type: 'BadRequestError', param: 'input_tokens', code: 400 } })));
    await expect(client().completions.create({ model: MODEL, prompt: 'x' })).rejects.toMatchObject({ constructor: BadRequestError, code: 'context_length_exceeded', param: 'prompt' });
  });

  test('end with an error when the engine breaks off, and bill what was delivered', async () => {
    everywhere(({ response }) => {
      startStream(response);
      response.write(frame({ object: 'text_completion', choices: [{ index: 0, text: 'a', finish_reason: null }], usage: { prompt_tokens: 3, completion_tokens: 1 } }));
      setTimeout(() => response.destroy(), 20);
    });
    const events = await readEvents(await post('/v1/completions', { model: MODEL, prompt: 'x', stream: true }));
    expect(JSON.parse(events.at(-2) ?? '')).toMatchObject({ error: { code: 'engine_response_invalid' } });
    expect(events.at(-1)).toBe('[DONE]');
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', completionTokens: 1, promptTokens: 3 }]);
  });

  test('are retried elsewhere before the first byte, and stop when the client leaves', async () => {
    world.engines[0]!.behaviours = [({ response }) => void response.writeHead(503).end('<html>overloaded</html>'), complete];
    expect((await client().completions.create({ model: MODEL, prompt: 'x' })).choices[0]?.text).toBe('a b');
    const abort = new AbortController();
    everywhere(() => undefined);
    const leaving = world.fetch('/v1/completions', { method: 'POST', key: world.key, body: JSON.stringify({ model: MODEL, prompt: 'leave' }), signal: abort.signal }).catch(() => undefined);
    const engineSide = await eventually(() => requests().find((request) => request.body['prompt'] === 'leave'), (found) => found !== undefined);
    abort.abort();
    await engineSide?.aborted;
    await leaving;
    expect(await world.usage(2)).toMatchObject([{ status: 'completed' }, { status: 'aborted', httpStatus: 499 }]);
  });
});

describe('embeddings', () => {
  const vector = [0.25, -0.5, 1];
  const base64 = Buffer.from(new Float32Array(vector).buffer).toString('base64');
  const embed: EngineBehaviour = (exchange) => {
    const { input, encoding_format: format } = exchange.body as { input: unknown[] | string; encoding_format: string };
    const count = Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1;
    const data = Array.from({ length: count }, (_, index) => ({ index, object: 'embedding', embedding: format === 'base64' ? base64 : vector, ...(format === 'base64' ? { encoding_format: 'base64' } : {}) }));
    return json({ id: 'embd-inner', object: 'list', created: 1, model: 'inner-model', data, usage: { prompt_tokens: 4 * count, total_tokens: 4 * count, completion_tokens: 0, prompt_tokens_details: null } })(exchange);
  };
  beforeEach(() => everywhere(embed));

  test('reach the official SDK as numbers, whichever form it asked for', async () => {
    const byDefault = await client().embeddings.create({ model: MODEL, input: ['a', 'b'] });
    expect(byDefault).toMatchObject({ object: 'list', model: MODEL, data: [{ index: 0, embedding: vector }, { index: 1, embedding: vector }], usage: { prompt_tokens: 8, total_tokens: 8 } });
    const floats = await client().embeddings.create({ model: MODEL, input: [[1, 2], [3]], encoding_format: 'float' });
    expect(floats.data.map((item) => item.embedding)).toEqual([vector, vector]);
    embeddingList.parse(floats);
    expect(requests().map((request) => request.body['encoding_format'])).toEqual(['base64', 'float']);
    expect(JSON.stringify([byDefault, floats])).not.toContain('inner');
    expect(await world.usage(2)).toMatchObject([{ operation: 'embeddings', promptTokens: 8, completionTokens: 0, tokensEstimated: false }, { operation: 'embeddings' }]);
  });

  test('pass numbers as the engine wrote them', async () => {
    everywhere(({ response }) => void response.writeHead(200).end('{"data":[{"embedding":[1.0,0.10000000149011612],"index":0,"object":"embedding"}],"usage":{"prompt_tokens":2,"total_tokens":2},"model":"inner-model"}'));
    expect(await (await post('/v1/embeddings', { model: MODEL, input: 'x' })).text()).toBe(`{"object":"list","data":[{"embedding":[1.0,0.10000000149011612],"index":0,"object":"embedding"}],"model":"${MODEL}","usage":{"prompt_tokens":2,"total_tokens":2}}`);
  });

  test('with dimensions are what was asked or refused', async () => {
    expect((await client().embeddings.create({ model: MODEL, input: 'x', dimensions: 3 })).data[0]?.embedding).toEqual(vector);
    await expect(client().embeddings.create({ model: MODEL, input: 'x', dimensions: 2 })).rejects.toMatchObject({ constructor: BadRequestError, param: 'dimensions' });
  });

  test.each([
    [{ input: '' }, 'input'], [{ input: ['a', ''] }, 'input[1]'], [{ input: [] }, 'input'], [{ input: Array.from({ length: 2_049 }, () => 'x') }, 'input'], [{ input: 'x', encoding_format: 'int8' }, 'encoding_format'], [{ input: 'x', dimensions: 0 }, 'dimensions'],
  ])('refuse a bad request before any engine hears of it (%#)', async (body, param) => {
    const response = await post('/v1/embeddings', { model: MODEL, ...body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param } });
    expect(requests()).toHaveLength(0);
  });

  test('bring nothing along that an engine would fetch, or that would let it mix tenants', async () => {
    await post('/v1/embeddings', { model: MODEL, input: 'x', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://127.0.0.1/' } }] }], cache_salt: 'theirs', kv_transfer_params: {}, request_id: 'x' });
    expect(requests()[0]?.body).toEqual({ model: 'inner-model', input: 'x', encoding_format: 'float', cache_salt: expect.not.stringContaining('theirs') });
  });

  test('of a model that has no vectors are an error, not zeros', async () => {
    everywhere(json({ data: [{ index: 0, object: 'embedding', embedding: [null, null] }], usage: { prompt_tokens: 1, total_tokens: 1 } }));
    expect((await post('/v1/embeddings', { model: MODEL, input: 'x' })).status).toBe(502);
    everywhere(({ response }) => void response.writeHead(404, { 'content-type': 'application/json' }).end('{"detail":"Not Found"}'));
    expect(await (await post('/v1/embeddings', { model: MODEL, input: 'x' })).json()).toMatchObject({ error: { code: 'unsupported_operation', param: 'model' } });
  });
});

describe('responses', () => {
  test('are whole and streamed for the official SDK', async () => {
    const whole = await client().responses.create({ model: MODEL, input: 'hi', instructions: 'be brief', max_output_tokens: 3 });
    responseObject.parse(whole);
    expect(whole).toMatchObject({ object: 'response', status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, model: MODEL, output_text: 't0 t1 t2 ', store: false, usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 } });
    expect(requests()[0]).toMatchObject({ path: '/v1/chat/completions', body: { max_tokens: 3, messages: [{ role: 'system', content: 'be brief' }, { role: 'user', content: 'hi' }] } });
    expect(requests()[0]?.body).not.toHaveProperty('input');
    const types: string[] = [];
    const stream = client().responses.stream({ model: MODEL, input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }] });
    for await (const event of stream) types.push(event.type);
    expect(types.slice(0, 5)).toEqual(['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added', 'response.output_text.delta']);
    expect(types.slice(-4)).toEqual(['response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.incomplete']);
    expect((await stream.finalResponse()).output_text).toBe('t0 t1 t2 ');
    expect(await world.usage(2)).toMatchObject([{ operation: 'chat', completionTokens: 3 }, { operation: 'chat', stream: true, completionTokens: 3 }]);
  });

  test('are kept only when asked for, for their organisation alone, and can be gone on from', async () => {
    const first = await client().responses.create({ model: MODEL, input: 'one' });
    await expect(client().responses.retrieve(first.id)).rejects.toThrow(NotFoundError);
    const kept = await client().responses.create({ model: MODEL, input: 'two', store: true });
    expect(kept).toMatchObject({ store: true });
    expect(await client().responses.retrieve(kept.id)).toEqual(expect.objectContaining({ id: kept.id, output_text: kept.output_text }));
    await client().responses.create({ model: MODEL, input: 'three', previous_response_id: kept.id });
    const goneOn = requests().map(({ body }) => body['messages'] as { content: string }[]).find((messages) => messages.length > 1);
    expect(goneOn).toEqual([{ role: 'user', content: 'two' }, { role: 'assistant', content: 't0 t1 t2 ' }, { role: 'user', content: 'three' }]);
    expect((await client().responses.inputItems.list(kept.id)).data).toMatchObject([{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'two' }] }]);
    const other = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Other' }) })).json() as { id: string };
    const project = ((await (await world.fetch('/admin/v1/projects')).json()) as { data: { id: string; organisation_id: string }[] }).data.find((each) => each.organisation_id === other.id);
    const { key } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'x', project_id: project?.id }) })).json() as { key: string };
    expect((await world.fetch(`/v1/responses/${kept.id}`, { key })).status).toBe(404);
    await client().responses.delete(kept.id);
    await expect(client().responses.create({ model: MODEL, input: 'x', previous_response_id: kept.id })).rejects.toMatchObject({ code: 'response_not_found', param: 'previous_response_id' });
  });

  test('have input that is listed page by page, is counted before it is sent, and no answer to cancel', async () => {
    const input = ['a', 'b', 'c'].map((content) => ({ role: 'user' as const, content }));
    const { id } = await client().responses.create({ model: MODEL, input, store: true });
    const texts: string[] = [];
    for await (const item of client().responses.inputItems.list(id, { limit: 2, order: 'asc' })) texts.push(JSON.stringify(item));
    expect(texts.map((text) => /"text":"(.)"/.exec(text)?.[1])).toEqual(['a', 'b', 'c']);
    await expect(client().responses.inputItems.list(id, { after: 'item_x' })).rejects.toMatchObject({ status: 400, param: 'after' });
    await expect(client().responses.cancel(id)).rejects.toMatchObject({ constructor: BadRequestError, code: 'unsupported_operation', message: expect.stringContaining('Cannot cancel a synchronous response') });
    await expect(client().responses.cancel('resp_x')).rejects.toThrow(NotFoundError);
    everywhere(json({ count: 3, max_model_len: 9, tokens: [7, 8, 9], token_strs: null }));
    const tools = [{ type: 'function' as const, name: 'f', parameters: {}, strict: null }];
    expect(await client().responses.inputTokens.count({ model: MODEL, input: 'd', instructions: 'brief', tools, previous_response_id: id })).toEqual({ object: 'response.input_tokens', input_tokens: 3 });
    expect(requests().at(-1)).toMatchObject({ path: '/tokenize', body: { model: 'inner-model', tools: [{ type: 'function', function: { name: 'f' } }] } });
    expect((requests().find(({ path }) => path === '/tokenize')?.body['messages'] as { content: string }[]).map(({ content }) => content)).toEqual(['brief', 'a', 'b', 'c', 't0 t1 t2 ', 'd']);
  });

  test('that are refused after their headers are failed from their first event to their last', async () => {
    const slow = await startWorld({ settings: { EARLY_HEADERS_AFTER_MS: '1', HEARTBEAT_INTERVAL_MS: '1' } });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    slow.commands.serve(admitRequest, async () => {
      await released;
      return { kind: 'refused', refusal: { code: 'queue_timeout', message: 'The queue was too long.' } };
    });
    const stream = await new OpenAI({ apiKey: slow.key, baseURL: `${slow.url}/v1`, maxRetries: 0 }).responses.create({ model: MODEL, input: 'x', stream: true });
    release();
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) events.push(event);
    await slow.close();
    expect(events.map(({ type, sequence_number: number }) => [number, type])).toEqual([[0, 'response.created'], [1, 'response.in_progress'], [2, 'response.failed']]);
    expect(events.at(-1)).toMatchObject({ response: { status: 'failed', error: { code: 'server_error', message: 'The queue was too long.' } } });
  });

  test('that break off are failed, and counted', async () => {
    everywhere((exchange) => {
      startStream(exchange.response);
      exchange.response.write(frame({ choices: [{ index: 0, delta: { role: 'assistant', content: 'x' }, finish_reason: null }], usage: { prompt_tokens: 5, completion_tokens: 1 } }));
      setTimeout(() => exchange.response.destroy(), 20);
    });
    const text = await (await post('/v1/responses', { model: MODEL, input: 'x', stream: true })).text();
    expect(text).toContain('event: response.failed\n');
    expect(text).not.toContain('[DONE]');
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', completionTokens: 1 }]);
  });

  test.each([
    [{ input: 'x', background: true }, 'background'], [{ input: 'x', conversation: 'c' }, 'conversation'], [{ input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://10.0.0.1/' }] }] }, 'input'],
    [{ input: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'input[0].content[0].type'], [{ input: 'x', max_output_tokens: 0 }, 'max_output_tokens'], [{ input: 'x', tools: [{ type: 'web_search' }] }, 'tools[0].type'],
  ])('refuse %j', async (body, param) => {
    expect(await (await post('/v1/responses', { model: MODEL, ...body })).json()).toMatchObject({ error: { param } });
    expect(requests()).toHaveLength(0);
  });
});

describe('ranking, scoring, classes and tokens', () => {
  const usage = { prompt_tokens: 9, total_tokens: 9 };

  test.each(['/v1/rerank', '/rerank', '/v2/rerank'])('%s orders documents, best first', async (path) => {
    everywhere(json({ id: 'rerank-inner', model: 'inner-model', usage, results: [{ index: 1, document: { text: 'b' }, relevance_score: 0.9 }, { index: 0, document: { text: 'a' }, relevance_score: 0.1 }] }));
    const answer = await (await post(path, { model: MODEL, query: 'q', documents: ['a', { text: 'b' }], top_n: 1 })).json();
    expect(answer).toEqual({ id: expect.stringMatching(/^rerank-[0-9a-f]+$/), model: MODEL, usage, results: [{ index: 1, document: { text: 'b' }, relevance_score: 0.9 }] });
    expect(requests()[0]).toMatchObject({ path: '/v1/rerank', body: { model: 'inner-model', documents: ['a', 'b'] } });
  });

  test('scores and classes come from the engine', async () => {
    everywhere(json({ id: 'x', object: 'list', model: 'inner-model', data: [{ index: 0, object: 'score', score: 0.5 }], usage }));
    expect(await (await post('/v1/score', { model: MODEL, text_1: 'a', text_2: 'b' })).json()).toMatchObject({ object: 'list', model: MODEL, data: [{ index: 0, object: 'score', score: 0.5 }], usage });
    everywhere(json({ id: 'x', object: 'list', model: 'inner-model', data: [{ index: 0, label: 'spam', probs: [0.9, 0.1], num_classes: 2 }], usage }));
    expect(await (await post('/v1/classify', { model: MODEL, input: 'a' })).json()).toMatchObject({ model: MODEL, data: [{ label: 'spam', probs: [0.9, 0.1], num_classes: 2 }], usage });
    expect(await (await post('/v1/score', { model: MODEL, queries: ['a', 'b'], documents: ['c', 'd', 'e'] })).json()).toMatchObject({ error: { param: 'queries' } });
  });

  test('texts are moderated by a model that classifies, under its name', async () => {
    const usage = { prompt_tokens: 4, total_tokens: 4 };
    const classes = (...labels: readonly string[]) => json({ id: 'x', object: 'list', model: 'inner-model', data: labels.map((label, index) => ({ index, label, probs: [0.75, 0.25], num_classes: 2 })), usage });
    everywhere(classes('hate', 'OK'));
    const answer = moderationAnswer.parse(await (await post('/v1/moderations', { model: MODEL, input: ['a', 'b'] })).json());
    expect([answer.model, answer.results.map(({ flagged }) => flagged), answer.results[0]?.category_scores.hate]).toEqual([MODEL, [true, false], 0.75]);
    expect(await world.usage(1)).toMatchObject([{ promptTokens: 4, completionTokens: 0, status: 'completed' }]);
    everywhere(classes('violence'));
    expect(moderationAnswer.parse(await (await post('/v1/moderations', { model: MODEL, input: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] })).json()).results).toHaveLength(1);
    expect(await (await post('/v1/moderations', { model: MODEL, input: [{ type: 'text', text: 'a' }, { type: 'image_url', image_url: { url: 'data:' } }] })).json()).toMatchObject({ error: { code: 'unsupported_value', param: 'input[1].type' } });
    everywhere(classes('spam'));
    const spam = await post('/v1/moderations', { model: MODEL, input: 'a' });
    expect([spam.status, await spam.json()]).toMatchObject([400, { error: { code: 'unsupported_operation', param: 'model' } }]);
    const missing = await post('/v1/moderations', { input: 'a' });
    expect([missing.status, await missing.json()]).toMatchObject([404, { error: { code: 'model_not_found', message: expect.stringContaining("There is no model 'omni-moderation-latest' here.") } }]);
  });

  test('tokens are counted by the model, and bill nothing', async () => {
    everywhere(json({ count: 2, max_model_len: 9, tokens: [7, 8], token_strs: null }));
    expect(await (await post('/v1/tokenize', { model: MODEL, prompt: 'hello world' })).json()).toEqual({ count: 2, max_model_len: 2_048, tokens: [7, 8], token_strs: null });
    everywhere(json({ prompt: 'hello world' }));
    expect(await (await post('/v1/detokenize', { model: MODEL, tokens: [7, 8] })).json()).toEqual({ prompt: 'hello world' });
    expect((await post('/v1/tokenize', { model: MODEL })).status).toBe(400);
    const remote = await post('/v1/tokenize', { model: MODEL, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://127.0.0.1/' } }] }] });
    expect([remote.status, await remote.json()]).toMatchObject([400, { error: { code: 'unsupported_value', param: 'messages[0].content[0].image_url' } }]);
    everywhere(answerAll);
    await world.chat({});
    expect(await world.usage(1)).toHaveLength(1);
  });
});

describe('bodies', () => {
  const chat = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });
  const send = (body: Buffer, encoding: string) => world.fetch('/v1/chat/completions', { method: 'POST', key: world.key, body: body as unknown as NonNullable<RequestInit['body']>, headers: { 'content-encoding': encoding, 'content-type': 'application/json' } });

  test.each([['gzip', gzipSync(chat)], ['zstd', zstdCompressSync(chat)]])('may come as %s', async (encoding, body) => {
    expect((await send(body, encoding)).status).toBe(200);
  });

  test('that unpack to more than the limit, or to nothing, are refused', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 0x20));
    expect(bomb.length).toBeLessThan(100_000);
    const response = await send(bomb, 'gzip');
    expect([response.status, await response.json()]).toEqual([413, { error: expect.objectContaining({ code: 'body_too_large' }) }]);
    expect((await send(zstdCompressSync(Buffer.alloc(50_000_000)), 'zstd')).status).toBe(413);
    expect(await (await send(Buffer.from('not gzip'), 'gzip')).json()).toMatchObject({ error: { code: 'invalid_value' } });
    expect((await send(gzipSync(chat).subarray(0, 30), 'gzip')).status).toBe(400);
    expect((await send(Buffer.from(chat), 'br')).status).toBe(415);
    expect((await send(Buffer.from(chat), 'gzip, gzip')).status).toBe(415);
  });

  test.each([[502, 502], [413, 400], [200, 502]])('of HTML from something before an engine become the envelope (%i)', async (given, expected) => {
    everywhere(({ response }) => void response.writeHead(given, { 'content-type': 'text/html' }).end('<html><h1>nginx at 10.0.0.7</h1></html>'));
    for (const [path, body] of [['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }], ['/v1/completions', { prompt: 'x' }], ['/v1/embeddings', { input: 'x' }]] as const) {
      for (const stream of path === '/v1/embeddings' ? [false] : [false, true]) {
        const response = await post(path, { model: MODEL, ...body, ...(stream ? { stream } : {}) });
        const text = await response.text();
        expect(response.status).toBe(expected);
        expect(text).not.toContain('nginx');
        expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String), type: expect.any(String) } });
      }
    }
  });
});
