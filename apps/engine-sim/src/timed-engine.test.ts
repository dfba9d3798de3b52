import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '@penstock/testing-kit';
import { parseOptions } from './options.js';
import { startSim, type RunningSim } from './server.js';

let folder: string;
let sim: RunningSim;

async function start(...flags: string[]): Promise<void> {
  sim = await startSim(parseOptions(['--model', 'tiny', '--timing-model', 'h100-llama-3.1-8b', '--time-scale', '0.02', '--ledger', join(folder, 'ledger.jsonl'), ...flags]));
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-timed-'));
});

afterEach(async () => {
  await sim.close();
  await rm(folder, { recursive: true, force: true });
});

interface Body {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly prompt_tokens_details: { readonly cached_tokens: number } | null };
}

const LONG = 'Water turns the wheel, and the wheel turns the stone. '.repeat(20);

function ask(content: string, extra: Record<string, unknown> = {}): Promise<Response> {
  return fetch(`${sim.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content }], max_tokens: 8, ignore_eos: true, ...extra }),
  });
}

const bodyOf = async (response: Response): Promise<Body> => (await response.json()) as Body;

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${sim.url}/metrics`)).text();
  return Number(text.split('\n').find((line) => line.startsWith(`${name}{`))?.split(' ').at(-1));
}

test('the same prompt is found in the cache, another salt finds nothing, and the metrics count both', async () => {
  await start();
  const cached = async (extra: Record<string, unknown> = {}): Promise<number | undefined> => (await bodyOf(await ask(LONG, extra))).usage.prompt_tokens_details?.cached_tokens;
  const { usage } = await bodyOf(await ask(LONG));
  expect(usage).toMatchObject({ completion_tokens: 8, prompt_tokens_details: { cached_tokens: 0 } });
  const full = Math.floor((usage.prompt_tokens - 1) / 16) * 16;
  expect(await cached()).toBe(full);
  expect(await cached({ cache_salt: 'a' })).toBe(0);
  expect(await cached({ cache_salt: 'a' })).toBe(full);
  expect(await cached({ cache_salt: 'b' })).toBe(0);
  expect(await metric('vllm:prefix_cache_queries_total')).toBe(5 * usage.prompt_tokens);
  expect(await metric('vllm:prefix_cache_hits_total')).toBe(2 * full);
  expect(await metric('vllm:kv_cache_usage_perc')).toBe(0);
});

test('an adapter is a model of its own, with a cache of its own', async () => {
  await start('--lora-modules', 'red,blue');
  const { data } = (await (await fetch(`${sim.url}/v1/models`)).json()) as { data: { id: string; parent: string | null; max_model_len: number | null }[] };
  expect(data.map(({ id, parent, max_model_len: length }) => [id, parent, length])).toEqual([['tiny', null, 4_096], ['red', 'tiny', null], ['blue', 'tiny', null]]);
  const answers = await Promise.all(['red', 'blue', 'red'].map(async (model) => (await ask(LONG, { model })).json() as Promise<Body & { model: string }>));
  expect(answers.map(({ model }) => model)).toEqual(['red', 'blue', 'red']);
  const cached = async (model: string): Promise<number | undefined> => (await bodyOf(await ask(LONG, { model }))).usage.prompt_tokens_details?.cached_tokens;
  expect(await cached('tiny')).toBe(0);
  expect(await cached('blue')).toBeGreaterThan(0);
  expect((await ask(LONG, { model: 'green' })).status).toBe(404);
});

test('adapters that find no place on the accelerator wait, and the metrics say which do', async () => {
  await start('--lora-modules', 'red,blue', '--max-loras', '1', '--lora-load-ms', '600000', '--time-scale', '1');
  const info = async (): Promise<string | undefined> => (await (await fetch(`${sim.url}/metrics`)).text()).split('\n').filter((line) => line.startsWith('vllm:lora_requests_info{')).at(-1);
  expect(await info()).toContain('{max_lora="1",running_lora_adapters="",waiting_lora_adapters=""}');
  const leaving = new AbortController();
  const asked = ['red', 'blue'].map((model) => fetch(`${sim.url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, signal: leaving.signal, body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }) }).catch(() => undefined));
  await eventually(info, (line) => line !== undefined && /running_lora_adapters="(red|blue)",waiting_lora_adapters="(red|blue)"/.test(line));
  leaving.abort();
  await Promise.all(asked);
});

test('the model decides when tokens come, not what they are', async () => {
  await start();
  const timed = await bodyOf(await ask('What turns the wheel?', { seed: 3 }));
  await sim.close();
  sim = await startSim(parseOptions(['--model', 'tiny']));
  const simple = await bodyOf(await ask('What turns the wheel?', { seed: 3 }));
  expect(timed.choices[0]?.message.content).toBe(simple.choices[0]?.message.content);
  expect(simple.usage.prompt_tokens_details).toBeNull();
});

test('a stop string ends an answer early, several choices run side by side, and a stream says what was cached', async () => {
  await start();
  const whole = await bodyOf(await ask('What turns the wheel?', { n: 3, max_tokens: 20 }));
  expect(whole.choices.map((choice) => choice.finish_reason)).toEqual(['length', 'length', 'length']);
  const stop = whole.choices[0]?.message.content.split(' ')[5] ?? '';
  const stopped = await bodyOf(await ask('What turns the wheel?', { stop, max_tokens: 20 }));
  expect(stopped.choices[0]?.finish_reason).toBe('stop');
  expect(stopped.usage.completion_tokens).toBeLessThan(20);
  const text = await (await ask(LONG, { stream: true, stream_options: { include_usage: true } })).text();
  expect(text).toContain('"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}');
  expect(await metric('vllm:num_requests_running')).toBe(0);
});

test('a cache that is too small for all preempts, and every answer is still complete', async () => {
  await start('--num-gpu-blocks-override', '64', '--max-model-len', '512');
  const answers = await Promise.all(Array.from({ length: 8 }, async (_, index) => bodyOf(await ask(`${index} ${LONG}`, { max_tokens: 100 }))));
  expect(answers.map((answer) => answer.usage.completion_tokens)).toEqual(Array.from({ length: 8 }, () => 100));
  expect(await metric('vllm:num_preemptions_total')).toBeGreaterThan(0);
});

test('set to run out of memory, the engine dies as vLLM does: what ran fails, and it takes nothing more', async () => {
  await start('--num-gpu-blocks-override', '64', '--max-model-len', '512', '--when-cache-is-full', 'out-of-memory');
  const responses = await Promise.all(Array.from({ length: 8 }, (_, index) => ask(`${index} ${LONG}`, { max_tokens: 100 })));
  expect(new Set(responses.map((response) => response.status))).toEqual(new Set([500]));
  expect((await fetch(`${sim.url}/health`)).status).toBe(503);
  expect((await ask('again')).status).toBe(500);
  const ends = (await readFile(join(folder, 'ledger.jsonl'), 'utf8')).trim().split('\n').map((line) => JSON.parse(line) as { event: string; finished?: string }).filter((line) => line.event === 'end');
  expect(ends.map((line) => line.finished)).toEqual(Array.from({ length: 8 }, () => 'error'));
});

test('a client that leaves frees its place', async () => {
  await start('--time-scale', '1');
  const controller = new AbortController();
  const response = await fetch(`${sim.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, signal: controller.signal,
    body: JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'go on' }], max_tokens: 2_000, ignore_eos: true, stream: true }),
  });
  await response.body?.getReader().read();
  expect(await metric('vllm:num_requests_running')).toBe(1);
  controller.abort();
  while ((await metric('vllm:num_requests_running')) > 0) await new Promise(setImmediate);
  expect(await metric('vllm:kv_cache_usage_perc')).toBe(0);
});

test('a timing model that does not exist, or a context longer than the cache, is refused at the start', async () => {
  await start();
  await expect(startSim(parseOptions(['--timing-model', 'abacus']))).rejects.toThrow(/no timing profile abacus\. Known: /);
  await expect(startSim(parseOptions(['--timing-model', 'h100-llama-3.1-8b', '--num-gpu-blocks-override', '8']))).rejects.toThrow(/cache holds 128 tokens/);
});
