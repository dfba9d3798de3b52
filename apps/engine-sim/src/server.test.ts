import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseOptions } from './options.js';
import { startSim, type RunningSim } from './server.js';

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly { index: number; delta?: { role?: string; content?: string }; text?: string; finish_reason: string | null; stop_reason?: string | null; logprobs: unknown }[];
  readonly usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  readonly error?: { message: string; code: number };
}

interface LedgerLine {
  readonly event: 'start' | 'end';
  readonly requestId: string;
  readonly promptTokens: number;
  readonly producedTokens: number;
  readonly deliveredTokens: number;
  readonly finished: string;
}

let folder: string;
let sim: RunningSim;
let ledgerPath: string;

async function start(...flags: string[]): Promise<void> {
  sim = await startSim(parseOptions(['--model', 'tiny', '--max-model-len', '2048', '--ledger', ledgerPath, ...flags]));
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-sim-'));
  ledgerPath = join(folder, 'ledger.jsonl');
});

afterEach(async () => {
  await sim.close();
  await rm(folder, { recursive: true, force: true });
});

const question = { model: 'tiny', messages: [{ role: 'user', content: 'What turns the wheel?' }] };

function ask(body: unknown, headers: Record<string, string> = {}, path = '/v1/chat/completions', signal?: AbortSignal): Promise<Response> {
  return fetch(`${sim.url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });
}

function eventsOf(text: string): { chunks: Chunk[]; last: string } {
  const data = text.split('\n\n').filter((event) => event !== '').map((event) => event.replace(/^data: /, ''));
  const last = data.at(-1) ?? '';
  return { chunks: data.slice(0, -1).map((event) => JSON.parse(event) as Chunk), last };
}

async function ledgerLines(): Promise<LedgerLine[]> {
  return (await readFile(ledgerPath, 'utf8')).trim().split('\n').map((line) => JSON.parse(line) as LedgerLine);
}

async function endLineOf(requestId: string): Promise<LedgerLine> {
  const deadlineMs = performance.now() + 10_000;
  for (;;) {
    const found = (await ledgerLines()).find((line) => line.event === 'end' && line.requestId === requestId);
    if (found !== undefined) return found;
    if (performance.now() > deadlineMs) throw new Error(`no end line of ${requestId}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${sim.url}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name}{`));
  return Number(line?.split(' ').at(-1));
}

describe('answers in vLLM\'s shape', () => {
  test('an unstreamed chat has vLLM\'s keys, and its usage is what the ledger says', async () => {
    await start();
    const response = await ask({ ...question, max_tokens: 7, ignore_eos: true }, { 'x-request-id': 'req-1' });
    const body = (await response.json()) as Chunk & Record<string, unknown>;
    expect(Object.keys(body)).toEqual([
      'id', 'object', 'created', 'model', 'choices', 'service_tier', 'system_fingerprint', 'usage',
      'prompt_logprobs', 'prompt_token_ids', 'prompt_text', 'kv_transfer_params', 'ec_transfer_params', 'metrics',
    ]);
    expect(body.id).toBe('chatcmpl-req-1');
    expect(body.choices[0]).toMatchObject({ index: 0, finish_reason: 'length', stop_reason: null, logprobs: null, message: { role: 'assistant', refusal: null } });
    expect(body.usage).toEqual({ prompt_tokens: 13, total_tokens: 20, completion_tokens: 7, prompt_tokens_details: null });
    expect(await endLineOf('req-1')).toMatchObject({ promptTokens: 13, producedTokens: 7, deliveredTokens: 7, finished: 'length' });
  });

  test('a stream starts with the role, ends with the finish, and has a usage chunk without choices only when asked', async () => {
    await start();
    const plain = eventsOf(await (await ask({ ...question, stream: true, max_tokens: 5, ignore_eos: true })).text());
    expect(plain.last).toBe('[DONE]');
    expect(plain.chunks[0]?.choices[0]).toEqual({ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null });
    expect(plain.chunks.at(-1)?.choices[0]).toMatchObject({ finish_reason: 'length', stop_reason: null });
    expect(plain.chunks.every((chunk) => !('usage' in chunk))).toBe(true);

    const counted = eventsOf(await (await ask({ ...question, stream: true, max_tokens: 5, ignore_eos: true, stream_options: { include_usage: true } })).text());
    expect(counted.chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 13, completion_tokens: 5, total_tokens: 18 } });
    expect(counted.chunks.slice(0, -1).every((chunk) => !('usage' in chunk))).toBe(true);
  });

  test('continuous usage is in every chunk, cumulative for its choice, and the last chunk sums the choices', async () => {
    await start();
    const body = { ...question, stream: true, n: 2, max_tokens: 4, ignore_eos: true, stream_options: { include_usage: true, continuous_usage_stats: true } };
    const { chunks } = eventsOf(await (await ask(body, { 'x-request-id': 'req-n2' })).text());
    for (const choice of [0, 1]) {
      const counts = chunks.filter((chunk) => chunk.choices[0]?.index === choice).map((chunk) => chunk.usage?.completion_tokens);
      expect(counts).toEqual([0, 1, 2, 3, 4]);
    }
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 8 } });
    expect(await endLineOf('req-n2')).toMatchObject({ producedTokens: 8, deliveredTokens: 8 });
  });

  test('the same prompt and seed give the same answer; another seed gives another', async () => {
    await start();
    const answer = async (seed: number): Promise<string> => {
      const body = (await (await ask({ ...question, max_tokens: 12, ignore_eos: true, seed })).json()) as { choices: [{ message: { content: string } }] };
      return body.choices[0].message.content;
    };
    expect(await answer(1)).toBe(await answer(1));
    expect(await answer(1)).not.toBe(await answer(2));
  });

  test('a stop string is not sent, is named, and is counted', async () => {
    await start();
    const whole = (await (await ask({ ...question, max_tokens: 10, ignore_eos: true })).json()) as { choices: [{ message: { content: string } }] };
    const words = whole.choices[0].message.content.split(' ');
    const stop = ` ${words[3] ?? ''}`;
    const { chunks } = eventsOf(await (await ask({ ...question, stream: true, max_tokens: 10, ignore_eos: true, stop, stream_options: { include_usage: true } })).text());
    const text = chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('');
    expect(text).toBe(whole.choices[0].message.content.slice(0, whole.choices[0].message.content.indexOf(stop)));
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: stop });
    expect(chunks.at(-1)?.usage?.completion_tokens).toBeLessThanOrEqual(4);
  });

  test('completions, models, version, tokenize and health answer', async () => {
    await start();
    const completion = (await (await ask({ model: 'tiny', prompt: 'Once upon' }, {}, '/v1/completions')).json()) as Chunk;
    expect(completion).toMatchObject({ object: 'text_completion', usage: { prompt_tokens: 3 } });
    expect(completion.id).toMatch(/^cmpl-[0-9a-f]{16}$/);
    expect(await (await fetch(`${sim.url}/version`)).json()).toEqual({ version: '0.32.0' });
    expect(await (await fetch(`${sim.url}/v1/models`)).json()).toMatchObject({ object: 'list', data: [{ id: 'tiny', owned_by: 'vllm', max_model_len: 2_048 }] });
    expect(await (await ask({ prompt: 'hello world' }, {}, '/tokenize')).json()).toMatchObject({ count: 3, max_model_len: 2_048, token_strs: null });
    expect((await fetch(`${sim.url}/health`)).status).toBe(200);
  });
});

describe('errors in vLLM\'s words', () => {
  test.each([
    ['unknown model', { ...question, model: 'nope' }, 404, { message: 'The model `nope` does not exist. Valid aliases: tiny.', type: 'NotFoundError', param: 'model', code: 404 }],
    ['max_tokens 0', { ...question, max_tokens: 0 }, 400, { message: 'max_tokens must be at least 1, got 0.', type: 'BadRequestError' }],
    ['wrong type', { ...question, messages: 'x' }, 400, { type: 'Bad Request', param: 'body.messages', code: 400 }],
    ['too long', { ...question, messages: [{ role: 'user', content: 'x'.repeat(9_000) }] }, 400, { type: 'BadRequestError', param: 'input_tokens' }],
    ['stream options without stream', { ...question, stream_options: {} }, 400, { type: 'BadRequestError' }],
  ])('%s', async (_name, body, status, error) => {
    await start();
    const response = await ask(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error });
  });

  test('bad JSON, an unknown route and a wrong method', async () => {
    await start();
    const bad = await fetch(`${sim.url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"messages":[' });
    expect([bad.status, await bad.json()]).toMatchObject([400, { error: { type: 'Bad Request', code: 400 } }]);
    const unknown = await ask({}, {}, '/v1/embeddings');
    expect([unknown.status, await unknown.json()]).toEqual([404, { detail: 'Not Found' }]);
    const wrong = await fetch(`${sim.url}/v1/chat/completions`);
    expect([wrong.status, await wrong.json()]).toEqual([405, { detail: 'Method Not Allowed' }]);
  });

  test('one request more than the queue takes is refused with 503', async () => {
    await start('--max-num-queued-reqs', '1', '--tokens-per-second', '50');
    const controller = new AbortController();
    const running = await ask({ ...question, stream: true, ignore_eos: true }, { 'x-request-id': 'req-full' }, '/v1/chat/completions', controller.signal);
    const refused = await ask(question);
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: { type: 'Service Unavailable', code: 503 } }]);
    controller.abort();
    await running.text().catch(() => undefined);
    await endLineOf('req-full');
  });
});

describe('the truth ledger', () => {
  test('a client that leaves aborts the sequence, frees the slot, and the end line says how much was delivered', async () => {
    await start('--tokens-per-second', '200');
    const controller = new AbortController();
    const response = await ask({ ...question, stream: true, ignore_eos: true }, { 'x-request-id': 'req-gone' }, '/v1/chat/completions', controller.signal);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    controller.abort();
    await reader.closed.catch(() => undefined);
    const end = await endLineOf('req-gone');
    expect(end.finished).toBe('abort');
    expect(end.deliveredTokens).toBeGreaterThanOrEqual(1);
    expect(end.deliveredTokens).toBeLessThanOrEqual(end.producedTokens);
    expect(await metric('vllm:num_requests_running')).toBe(0);
    expect(await metric('vllm:kv_cache_usage_perc')).toBe(0);
  });

  test('an unstreamed request whose client leaves delivered nothing', async () => {
    await start('--tokens-per-second', '50');
    const controller = new AbortController();
    const gone = ask({ ...question, ignore_eos: true }, { 'x-request-id': 'req-gone-2' }, '/v1/chat/completions', controller.signal).catch(() => 'aborted');
    while ((await metric('vllm:num_requests_running')) !== 1) await new Promise((resolve) => setTimeout(resolve, 5));
    controller.abort();
    expect(await gone).toBe('aborted');
    expect(await endLineOf('req-gone-2')).toMatchObject({ finished: 'abort', deliveredTokens: 0 });
  });

  test('many requests in few slots: the sum of usage is the sum of the ledger and of the metrics', async () => {
    await start('--max-num-seqs', '3');
    const usages = await Promise.all(Array.from({ length: 20 }, async (_, index) => {
      const body = (await (await ask({ ...question, seed: index, max_tokens: 5 + index }, { 'x-request-id': `many-${index}` })).json()) as Chunk;
      return body.usage?.completion_tokens ?? 0;
    }));
    const total = usages.reduce((sum, tokens) => sum + tokens, 0);
    const ends = (await ledgerLines()).filter((line) => line.event === 'end');
    expect(ends).toHaveLength(20);
    expect(ends.reduce((sum, line) => sum + line.deliveredTokens, 0)).toBe(total);
    expect(await metric('vllm:generation_tokens_total')).toBe(total);
  });
});

describe('faults', () => {
  test('are ignored unless they were allowed at the start', async () => {
    await start();
    const { last } = eventsOf(await (await ask({ ...question, stream: true, max_tokens: 3 }, { 'x-sim-fault': 'error-after=1' })).text());
    expect(last).toBe('[DONE]');
    expect((await ask({ fault: 'refuse' }, {}, '/sim/fault')).status).toBe(404);
  });

  test('an engine error in the middle comes under 200 and ends with [DONE]; the ledger says error', async () => {
    await start('--fault-injection');
    const response = await ask({ ...question, stream: true, ignore_eos: true }, { 'x-sim-fault': 'error-after=3', 'x-request-id': 'req-error' });
    expect(response.status).toBe(200);
    const { chunks, last } = eventsOf(await response.text());
    expect(last).toBe('[DONE]');
    expect(chunks.at(-1)?.error).toMatchObject({ code: 500 });
    expect(await endLineOf('req-error')).toMatchObject({ finished: 'error', producedTokens: 3, deliveredTokens: 2 });
  });

  test('garbage, a cut connection, a refusal, wrong usage and a hang', async () => {
    await start('--fault-injection');
    const fault = (text: string) => ({ 'x-sim-fault': text });
    const garbage = await (await ask({ ...question, stream: true, max_tokens: 4 }, fault('garbage-after=2'))).text();
    expect(garbage).toContain('{"ind\n\n');
    await expect(ask({ ...question, stream: true, ignore_eos: true }, fault('cut-after=2')).then((response) => response.text())).rejects.toThrow();
    expect((await ask(question, fault('refuse'))).status).toBe(503);
    const wrong = (await (await ask({ ...question, max_tokens: 3, ignore_eos: true }, { ...fault('wrong-usage'), 'x-request-id': 'req-wrong' })).json()) as Chunk;
    expect(wrong.usage?.completion_tokens).toBe(30);
    expect((await endLineOf('req-wrong')).producedTokens).toBe(3);
    const controller = new AbortController();
    const hung = await ask({ ...question, stream: true, ignore_eos: true }, { ...fault('hang-after=2'), 'x-request-id': 'req-hung' }, '/v1/chat/completions', controller.signal);
    const reader = (hung.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    controller.abort();
    await reader.closed.catch(() => undefined);
    expect(await endLineOf('req-hung')).toMatchObject({ finished: 'abort', producedTokens: 2 });
  });

  test('stopping fails what is in flight as vLLM does', async () => {
    await start('--tokens-per-second', '50');
    const response = await ask({ ...question, stream: true, ignore_eos: true }, { 'x-request-id': 'req-term' });
    const text = response.text();
    await sim.close();
    const { chunks, last } = eventsOf(await text);
    expect(last).toBe('[DONE]');
    expect(chunks.at(-1)?.error?.message).toContain('EngineCore encountered an issue');
    expect((await endLineOf('req-term')).finished).toBe('error');
  });
});
