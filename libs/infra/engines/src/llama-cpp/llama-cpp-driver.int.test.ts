import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { addUsage, dialectOf, noteFinish, noUsage, type EngineProcess, type EngineStartSpec, type RunningUsage } from '@penstock/domain-serving';
import { defaultModel, NodeArtifactCache, writeRandomModel } from '@penstock/infra-artifacts';
import { defaultCacheDir, ensureRuntime } from '@penstock/infra-runtimes';
import { eventually } from '@penstock/testing-kit';
import { HttpEngineProbe } from '../http/http-engine-probe.js';
import { LlamaCppDriver } from './llama-cpp-driver.js';

/** The first run on a machine downloads the engine and the model. */
const SET_UP_TIMEOUT_MS = 600_000;

const driver = new LlamaCppDriver({ locate: () => ensureRuntime('llama-server') });
const probe = new HttpEngineProbe();
const dialect = dialectOf('llama.cpp');
const question = [{ role: 'system', content: 'You answer in English.' }, { role: 'user', content: 'What is the capital of France?' }];

let folder: string;
let engine: EngineProcess;

function specOf(overrides: Partial<EngineStartSpec>): EngineStartSpec {
  return {
    replicaId: 'rep_1', modelName: defaultModel.name, modelPath: null, slots: 2, contextTokens: 1_024, options: {}, device: null, attachedUrl: null,
    logFile: join(folder, 'engine.log'), stateDir: folder, ...overrides,
  };
}

const target = () => ({ kind: 'llama.cpp' as const, url: engine.url, servedModel: engine.servedModel });

function ask(body: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  return fetch(`${engine.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: engine.servedModel, temperature: 0, ...body }), ...(signal === undefined ? {} : { signal }),
  });
}

interface Chunk {
  readonly choices: readonly { index: number; delta: { content?: string | null }; finish_reason: string | null }[];
  readonly usage?: { completion_tokens: number; prompt_tokens: number };
}

async function chunksOf(response: Response): Promise<Chunk[]> {
  const events = (await response.text()).split('\n\n').map((event) => event.replace(/^data: /, '').trim()).filter((event) => event !== '' && event !== '[DONE]');
  return events.map((event) => JSON.parse(event) as Chunk);
}

function usageOf(chunks: readonly unknown[]): RunningUsage {
  return chunks.reduce<RunningUsage>((usage, chunk) => {
    const reading = dialect.readUsage(chunk);
    const read = reading === undefined ? usage : addUsage(usage, reading);
    const finished = (chunk as Chunk).choices.find((choice) => choice.finish_reason !== null);
    return finished === undefined ? read : noteFinish(read, finished.index);
  }, noUsage);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-llama-'));
  const cache = new NodeArtifactCache({ dir: join(defaultCacheDir(), 'models') });
  const files = [{ path: 'model.gguf', bytes: defaultModel.bytes, digest: defaultModel.digest }];
  const { path } = await cache.pull({ files, sources: defaultModel.sources });
  engine = await driver.start(specOf({ modelPath: path }));
}, SET_UP_TIMEOUT_MS);

afterAll(async () => {
  await engine.kill();
  await rm(folder, { recursive: true, force: true });
});

describe('the default model in llama.cpp', () => {
  test('answers a one-token probe and reports its load', async () => {
    expect(await probe.generate(target(), 60_000)).toMatchObject({ kind: 'answered', completionTokens: 1 });
    expect(await probe.telemetry(target(), 5_000)).toMatchObject({ running: 0, waiting: 0, kvCacheUsage: null });
  });

  test('unstreamed: the answer is sensible and the usage is read', async () => {
    const body: unknown = await (await ask({ messages: question, max_tokens: 24 })).json();
    expect(JSON.stringify(body)).toContain('Paris');
    const reading = dialect.readUsage(body);
    expect(reading).toMatchObject({ scope: 'request' });
    expect(reading?.promptTokens).toBeGreaterThan(10);
  });

  test('streamed: running usage grows with the chunks and ends at the engine\'s own figure', async () => {
    const chunks = await chunksOf(await ask({ messages: question, max_tokens: 16, stream: true, ...dialect.fieldsToSet({ stream: true }) }));
    expect(usageOf(chunks.slice(0, 5)).completionTokens).toBeGreaterThan(0);
    const last = chunks.at(-1)?.usage;
    expect(usageOf(chunks)).toMatchObject({ completionTokens: last?.completion_tokens, promptTokens: last?.prompt_tokens });
  });

  test('n = 2 streamed: the tokens of both choices are counted, though the engine reports each by itself', async () => {
    const chunks = await chunksOf(await ask({ messages: question, max_tokens: 8, n: 2, temperature: 1, seed: 7, stream: true, ...dialect.fieldsToSet({ stream: true }) }));
    const perChoice = chunks.flatMap((chunk) => chunk.usage?.completion_tokens ?? []);
    expect(perChoice).toHaveLength(2);
    expect(usageOf(chunks).completionTokens).toBe(perChoice.reduce((sum, tokens) => sum + tokens, 0));
    expect(dialect.reportsUsageUnstreamed(2)).toBe(false);
  });

  test('a prompt that is too long is a context error with both figures', async () => {
    const response = await ask({ messages: [{ role: 'user', content: 'word '.repeat(3_000) }] });
    expect(dialect.readFault(response.status, await response.json())).toMatchObject({ code: 'context_length_exceeded', message: expect.stringContaining('1024 tokens') as unknown as string });
  });

  test('a client that leaves frees its slot', async () => {
    const controller = new AbortController();
    const response = await ask({ messages: question, max_tokens: 900, ignore_eos: true, stream: true }, controller.signal);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await eventually(() => probe.telemetry(target(), 5_000), (telemetry) => telemetry?.running === 1);
    controller.abort();
    await reader.closed.catch(() => undefined);
    await eventually(() => probe.telemetry(target(), 5_000), (telemetry) => telemetry?.running === 0);
  });

  test('SIGTERM ends it at once', async () => {
    await engine.stop(10_000);
    expect((await engine.exited).reason).not.toContain('SIGKILL');
  });
});

describe('other files', () => {
  test('the random model loads and generates', async () => {
    const path = join(folder, 'random.gguf');
    await writeRandomModel(path);
    const random = await driver.start(specOf({ modelPath: path, modelName: 'random' }));
    try {
      expect(await probe.generate({ kind: 'llama.cpp', url: random.url, servedModel: 'random' }, 60_000)).toMatchObject({ kind: 'answered' });
      const response = await fetch(`${random.url}/v1/chat/completions`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ messages: question, max_tokens: 12, ignore_eos: true, temperature: 0 }),
      });
      expect(await response.json()).toMatchObject({ usage: { completion_tokens: 12 } });
    } finally {
      await random.kill();
    }
  });

  test('a file that is no model ends the start with the engine\'s words', async () => {
    const path = join(folder, 'broken.gguf');
    await writeFile(path, 'GGUF but not really');
    await expect(driver.start(specOf({ modelPath: path }))).rejects.toMatchObject({ code: 'engine_exited' });
  });

  test('no llama.cpp on the node is a missing engine', async () => {
    const missing = new LlamaCppDriver({ locate: async () => undefined });
    expect(await missing.detect()).toBeUndefined();
    await expect(missing.start(specOf({ modelPath: '/x' }))).rejects.toMatchObject({ code: 'engine_missing' });
  });
});
