import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openAiErrorBody } from '@penstock/contract-http';
import OpenAI from 'openai';
import { request as httpRequest } from 'undici';
import { answerAll, engineFrames, startStream, type EngineBehaviour } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';

/** Faults that users of other gateways and engines reported in public, each as the behaviour that is right. The names say where. */
let world: World;
beforeAll(async () => {
  world = await startWorld({ settings: { EARLY_HEADERS_AFTER_MS: '50', HEARTBEAT_INTERVAL_MS: '50' } });
  world.serveRouter();
});
afterAll(() => world.close());
beforeEach(() => behave(answerAll));

const MODEL = 'public-model';
const engine = () => world.engines[0]!;
const behave = (...behaviours: EngineBehaviour[]) => {
  engine().behaviours = behaviours;
};
const frame = (body: object) => `data: ${JSON.stringify({ id: 'chatcmpl-inner', object: 'chat.completion.chunk', created: 1, model: 'inner-model', ...body })}\n\n`;
const choice = (delta: object, finish: string | null = null, index = 0) => frame({ choices: [{ index, delta, finish_reason: finish }] });
const streaming = (...frames: string[]): EngineBehaviour => ({ response }) => {
  startStream(response);
  response.end(frames.join('') + engineFrames.done);
};

type Chunk = OpenAI.ChatCompletionChunk & { readonly usage?: OpenAI.CompletionUsage | null };
async function stream(body: object = {}): Promise<{ chunks: Chunk[]; last: string; response: Response }> {
  const response = await world.chat({ stream: true, ...body });
  const events = await readEvents(response);
  return { chunks: events.slice(0, -1).map((event) => JSON.parse(event) as Chunk), last: events.at(-1) ?? '', response };
}
const withUsage = { stream_options: { include_usage: true } };
const deltas = (chunks: readonly Chunk[]) => chunks.flatMap((chunk) => chunk.choices.map(({ delta }) => delta as unknown as Record<string, unknown>));

describe('usage', () => {
  test('comes once, last, in a chunk with an empty list of choices, and is null before (litellm 8450, 28735, 9657, 5197, 11915; Portkey 1259, 1338; kubeai 283)', async () => {
    const { chunks } = await stream(withUsage);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 } });
    expect(chunks.slice(0, -1).map((chunk) => chunk.usage)).toEqual(chunks.slice(0, -1).map(() => null));
  });

  test.each([[{}], [{ stream_options: null }], [{ stream_options: {} }], [{ stream_options: { include_usage: false } }]])('stays hidden unless asked for: %j (headroom 2026; gittensor 1749; vLLM 36379; aibrix 757; genai-perf 8082)', async (options) => {
    const { chunks } = await stream(options);
    expect(chunks.some((chunk) => 'usage' in chunk || chunk.choices.length === 0)).toBe(false);
    expect(engine().requests.at(-1)?.body['stream_options']).toMatchObject({ include_usage: true });
  });

  test('is read whether or not a space follows the colon (ai-gateway 2470, 2155)', async () => {
    behave(({ response }) => {
      startStream(response);
      response.end([engineFrames.role(), engineFrames.token(0), engineFrames.finish(1), engineFrames.usage(1)].join('').replaceAll('data: {', 'data:{') + engineFrames.done);
    });
    expect((await stream(withUsage)).chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 1 });
  });
});

describe('streams', () => {
  test('always have a list of choices, one identity, the role first and once, and [DONE] last (ai-gateway 1975; Portkey 1399; llama.cpp 5876; litellm 1571, 1255; TGI 1782, 2221; sglang 39864)', async () => {
    behave(({ response }) => {
      startStream(response);
      response.end([frame({ id: '', choices: null }), frame({ id: 'a', created: 2, choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] }), frame({ id: 'b', created: 3, choices: [{ index: 0, delta: { role: 'assistant', content: 'y' }, finish_reason: 'stop' }] })].join(''));
    });
    const { chunks, last } = await stream();
    expect(chunks.every((chunk) => Array.isArray(chunk.choices))).toBe(true);
    expect(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size).toBe(1);
    expect(deltas(chunks)[0]).toEqual({ role: 'assistant', content: '', refusal: null });
    expect(deltas(chunks).filter((delta) => 'role' in delta)).toHaveLength(1);
    expect(last).toBe('[DONE]');
  });

  test('wait with comments of a single line break (bifrost 5874; llmgateway 2334)', async () => {
    behave(async (exchange) => {
      await new Promise((resolve) => setTimeout(resolve, 700));
      await answerAll(exchange);
    });
    const text = await (await world.chat({ stream: true })).text();
    expect(text).toMatch(/^: loading\n/);
    expect(text).not.toMatch(/: loading\n\n|^id:|^data: ?$/m);
  });

  test('are neither compressed on their way out nor asked for compressed (project-nomad 798; hive 2259; Containarium 826; opencodex 115; ai-gateway 2554, 2392)', async () => {
    for (const isStreamed of [true, false]) {
      const { headers, body } = await httpRequest(`${world.url}/v1/chat/completions`, {
        method: 'POST', headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json', 'accept-encoding': 'gzip, br, zstd' },
        body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'x' }], stream: isStreamed }),
      });
      const text = await body.text();
      expect(headers['content-encoding']).toBeUndefined();
      if (!isStreamed) expect(headers['content-length']).toBe(String(Buffer.byteLength(text)));
      expect(engine().requests.at(-1)?.headers['accept-encoding']).toBe('identity');
    }
  });

  test('that break off are errors and never look complete (pi 8460; agent-afk 635; CLIProxyAPI 5028)', async () => {
    behave(({ response }) => {
      startStream(response);
      response.write(engineFrames.role() + engineFrames.token(0));
      setTimeout(() => response.destroy(), 20);
    });
    const events = await readEvents(await world.chat({ stream: true }));
    expect(openAiErrorBody.parse(JSON.parse(events.at(-2) ?? '')).error.code).toBe('engine_response_invalid');
    expect(events.join('')).not.toMatch(/"finish_reason":"/);
  });

  test('carry logprobs with each chunk (litellm 3253; mlx-lm 1630)', async () => {
    const logprobs = { content: [{ token: 'x', logprob: -0.5, bytes: [120], top_logprobs: [] }] };
    behave(streaming(choice({ role: 'assistant', content: '' }), frame({ choices: [{ index: 0, delta: { content: 'x' }, logprobs, finish_reason: null }] }), choice({}, 'stop')));
    expect((await stream({ logprobs: true })).chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? [])).toEqual(logprobs.content);
  });

  test('keep what a model thinks, under either name (litellm 22573, 20246; vLLM router 115)', async () => {
    behave(streaming(choice({ role: 'assistant', content: '' }), choice({ reasoning: 'a' }), choice({ reasoning_content: 'b' }), choice({ content: 'c' }), choice({}, 'stop')));
    expect(deltas((await stream()).chunks)).toEqual(expect.arrayContaining([{ reasoning: 'a' }, { reasoning_content: 'b' }, { content: 'c' }]));
  });
});

describe('tool calls', () => {
  const call = (fragment: object, finish: string | null = null) => choice({ tool_calls: [fragment] }, finish);

  test('begin with id, type and name, and go on with arguments alone (vLLM 16340, 18412)', async () => {
    behave(streaming(choice({ role: 'assistant', content: null }), call({ index: 0, id: 'chatcmpl-tool-1', function: { name: 'f', arguments: '' } }), call({ index: 0, id: '', type: '', function: { name: null, arguments: '{}' } }), choice({}, 'tool_calls')));
    const fragments = deltas((await stream()).chunks).flatMap((delta) => (delta['tool_calls'] ?? []) as object[]);
    expect(fragments).toEqual([{ index: 0, id: expect.stringMatching(/^call_/), type: 'function', function: { name: 'f', arguments: '' } }, { index: 0, function: { arguments: '{}' } }]);
  });

  test.each(['stop', 'tool_calls', 'length'])('keep the finish reason %s of the engine (vLLM 9209, 25054; python-genai 2868; mlx-lm 782)', async (finish) => {
    behave(streaming(call({ index: 0, id: 'call_abcd', type: 'function', function: { name: 'f', arguments: '{}' } }), choice({}, finish)));
    expect((await stream()).chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? [])).toEqual([finish]);
  });

  test('may name a tool without parameters, and no tools at all (llama.cpp 17667; vLLM 19679)', async () => {
    expect((await world.chat({ tools: [{ type: 'function', function: { name: 'f' } }] })).status).toBe(200);
    expect((await world.chat({ tools: [], tool_choice: null })).status).toBe(200);
    expect(Object.keys(engine().requests.at(-1)?.body ?? {})).not.toEqual(expect.arrayContaining(['tools']));
  });
});

describe('requests', () => {
  test.each(['temperature', 'max_tokens', 'top_p', 'stop', 'n', 'seed', 'logprobs', 'tool_choice', 'response_format'])('%s may be null (llama.cpp 25515; vLLM 19862)', async (field) => {
    expect((await world.chat({ [field]: null })).status).toBe(200);
    expect(engine().requests.at(-1)?.body).not.toHaveProperty(field);
  });

  test('for an unknown model are 404, for one that is down 503 with a time to come back (worker-vllm 57; fak 360; gpustack fa979904)', async () => {
    const unknown = await world.chat({ model: 'nope' });
    expect([unknown.status, (openAiErrorBody.parse(await unknown.json())).error.code]).toEqual([404, 'model_not_found']);
    behave(({ response }) => void response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":{"message":"busy","type":"x","param":null,"code":503}}'));
    const down = await world.chat({});
    expect(down.status).toBe(503);
    expect(Number(down.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('reach every route that clients call, in pure JSON (gpustack 2767, 4255, 4799, 4648)', async () => {
    expect(await (await world.fetch(`/v1/models/${MODEL}`, { key: world.key })).json()).toMatchObject({ id: MODEL });
    openAiErrorBody.parse(await (await world.fetch('/v1/nowhere', { key: world.key })).json());
    expect((await (await world.chat({})).text()).startsWith('{')).toBe(true);
  });
});

describe('errors', () => {
  const failing = (status: number, body: string): EngineBehaviour => ({ response }) => void response.writeHead(status, { 'content-type': 'application/json' }).end(body);

  test.each(['{"object":"error","message":"bad","type":"BadRequestError","code":400}', '{"statusCode":400,"message":"bad"}', '{"detail":"bad"}', '{"error":"bad"}'])('of any shape get the envelope: %s (vLLM 12886; chat-ui 1343)', async (body) => {
    behave(failing(400, body));
    const response = await world.chat({});
    expect(response.status).toBe(400);
    openAiErrorBody.parse(await response.json());
  });

  test.each([true, false])('of a prompt that is too long say so (streamed: %p) (claude-code-router 1799; suna 6368, 5986; kserve 3886; vercel 18303)', async (isStreamed) => {
    behave(failing(400, JSON.stringify({ error: { message: `This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens`, type: 'BadRequestError', param: 'input_tokens', code: 400 } })));
    expect(openAiErrorBody.parse(await (await world.chat({ stream: isStreamed })).json()).error).toMatchObject({ code: 'context_length_exceeded', message: expect.stringContaining('2048') });
  });

  test('that may pass tell when to come back, under the plain name (aisix 144; litellm 21553, 4695)', async () => {
    behave(failing(503, '{}'));
    const { headers } = await world.chat({});
    expect([headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([expect.stringMatching(/^\d+$/), 'true']);
  });
});

test.each([[true, true], [true, false], [false, false]])('a client that leaves stops the engine (streamed: %p, after the first token: %p) (litellm 30244, 31499, 37140; bifrost 3164)', async (isStreamed, afterToken) => {
  const before = engine().requests.length;
  behave(({ response }) => {
    if (!afterToken) return;
    startStream(response);
    response.write(engineFrames.role() + engineFrames.token(0));
  });
  const leaving = new AbortController();
  const pending = world.chat({ stream: isStreamed }, { signal: leaving.signal }).then((response) => response.body?.getReader().read()).catch(() => undefined);
  for (let tries = 0; engine().requests.length === before && tries < 500; tries += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  if (afterToken) await pending;
  leaving.abort();
  await engine().requests.at(-1)?.aborted;
  await pending;
});

test.each(['length', 'stop'])('responses that end by %s are counted (ai-gateway 2184)', async (finish) => {
  behave(streaming(choice({ role: 'assistant', content: 'x' }), choice({}, finish), engineFrames.usage(7)));
  const response = await world.fetch('/v1/responses', { method: 'POST', key: world.key, body: JSON.stringify({ model: MODEL, input: 'x' }) });
  expect(await response.json()).toMatchObject({ usage: { output_tokens: 7 } });
});

test('vectors are in the form that was asked for, and flat (infinity 349; koboldcpp 1590; worker-infinity-embedding 30; llama-cpp-python 1588)', async () => {
  const vector = [0.5, -1];
  behave(({ body, response }) => void response.end(JSON.stringify({ data: [{ index: 0, object: 'embedding', embedding: body['encoding_format'] === 'base64' ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector }], usage: { prompt_tokens: 1, total_tokens: 1 } })));
  const client = new OpenAI({ apiKey: world.key, baseURL: `${world.url}/v1`, maxRetries: 0 });
  for (const format of [undefined, 'base64', 'float'] as const) {
    const { data } = await client.embeddings.create({ model: MODEL, input: 'x', ...(format === undefined ? {} : { encoding_format: format }) });
    expect(data[0]?.embedding).toEqual(format === 'base64' ? expect.any(String) : vector);
  }
  behave(({ response }) => void response.end(JSON.stringify({ data: [{ index: 0, object: 'embedding', embedding: [vector] }], usage: { prompt_tokens: 1, total_tokens: 1 } })));
  expect((await world.fetch('/v1/embeddings', { method: 'POST', key: world.key, body: JSON.stringify({ model: MODEL, input: 'x' }) })).status).toBe(502);
});
