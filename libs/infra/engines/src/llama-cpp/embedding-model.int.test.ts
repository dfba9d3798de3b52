import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { cosineSimilarity, dialectOf, readEmbeddings, readVectors, type EngineProcess } from '@penstock/domain-serving';
import { bringEmbeddingModel, embeddingModel, NodeArtifactCache } from '@penstock/infra-artifacts';
import { defaultCacheDir, ensureRuntime } from '@penstock/infra-runtimes';
import { HttpEngineProbe } from '../http/http-engine-probe.js';
import { LlamaCppDriver } from './llama-cpp-driver.js';

/** The first run on a machine downloads the engine and the model. */
const SET_UP_TIMEOUT_MS = 600_000;
const SENTENCE = 'A man is playing a guitar on stage.';
/** The first dimensions of the published model's own vector of {@link SENTENCE}; 16-bit weights move them by less than the tolerance. */
const GOLDEN = [0.018591, 0.035837, -0.01521, -0.078206, -0.143276, 0.004202];
const TOLERANCE_DIGITS = 3;

const dialect = dialectOf('llama.cpp');
let folder: string;
let engine: EngineProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-embed-'));
  const path = join(defaultCacheDir(), 'converted', `${embeddingModel.name}-${embeddingModel.version}.gguf`);
  await bringEmbeddingModel(new NodeArtifactCache({ dir: join(defaultCacheDir(), 'artifacts') }), path);
  engine = await new LlamaCppDriver({ locate: () => ensureRuntime('llama-server') }).start({
    replicaId: 'rep_e', modelName: embeddingModel.name, modelPath: path, slots: 2, contextTokens: embeddingModel.contextTokens, options: { embeddings: true }, device: null, attachedUrl: null,
    logFile: join(folder, 'engine.log'), stateDir: folder,
  });
}, SET_UP_TIMEOUT_MS);

afterAll(async () => {
  await engine.kill();
  await rm(folder, { recursive: true, force: true });
});

async function post(path: string, body: object): Promise<{ status: number; text: string }> {
  const response = await fetch(engine.url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

const embed = (input: unknown, format: 'float' | 'base64') => post('/v1/embeddings', { model: embeddingModel.name, input, encoding_format: format });

test('its vectors are those of the published model, in both forms', async () => {
  const floats = await embed(SENTENCE, 'float');
  const read = readEmbeddings(floats.status, floats.text, { dialect, model: 'public', count: 1, format: 'float', dimensions: undefined });
  const { data, usage } = JSON.parse(read.kind === 'answer' ? read.body : '{}') as { data: { embedding: number[] }[]; usage: object };
  expect(data[0]?.embedding).toHaveLength(embeddingModel.dimensions);
  GOLDEN.forEach((value, index) => expect(data[0]?.embedding[index]).toBeCloseTo(value, TOLERANCE_DIGITS));
  expect(usage).toEqual({ prompt_tokens: 11, total_tokens: 11 });
  const base64 = await embed(SENTENCE, 'base64');
  const vectors = readVectors(base64.status, base64.text, dialect, 1);
  GOLDEN.forEach((value, index) => expect(vectors.kind === 'vectors' ? vectors.vectors[0]?.[index] : undefined).toBeCloseTo(value, TOLERANCE_DIGITS));
});

test('what belongs together is near, what does not is far', async () => {
  const { status, text } = await embed(['How do I reset my password?', 'I forgot my login credentials and need a new password.', SENTENCE], 'base64');
  const read = readVectors(status, text, dialect, 3);
  if (read.kind !== 'vectors') throw new Error('no vectors came');
  const [query, near, far] = read.vectors as [Float32Array, Float32Array, Float32Array];
  expect(cosineSimilarity(query, near)).toBeGreaterThan(0.5);
  expect(cosineSimilarity(query, far)).toBeLessThan(0.2);
});

test.each([600, 5_000])('an input of %i words is the caller\'s to shorten, whatever status the engine gives', async (words) => {
  const { status, text } = await embed('word '.repeat(words), 'float');
  const read = readEmbeddings(status, text, { dialect, model: 'public', count: 1, format: 'float', dimensions: undefined });
  expect(read).toMatchObject({ kind: 'fault', fault: { code: 'context_length_exceeded', retryElsewhere: false } });
});

test('a chat with it is refused as unsupported, and the probe takes a vector for life', async () => {
  const { status, text } = await post('/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] });
  expect(dialect.readFault(status, JSON.parse(text))).toMatchObject({ code: 'unsupported_operation' });
  expect(await new HttpEngineProbe().generate({ kind: 'llama.cpp', url: engine.url, servedModel: engine.servedModel }, 60_000)).toMatchObject({ kind: 'answered', completionTokens: 0 });
});
