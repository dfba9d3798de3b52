import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Lease } from '@penstock/contract-commands';
import { ChatJoiner } from '@penstock/domain-serving';
import { FakeEngine, startStream, type EngineBehaviour } from '../fake-engine-suite.js';
import { EngineAttempt, type AttemptOutcome } from './engine-attempt.js';
import { ReplicaClients } from './replica-clients.js';

let engine: FakeEngine;
let clients: ReplicaClients;
beforeEach(async () => {
  engine = await FakeEngine.start();
  clients = new ReplicaClients();
});
afterEach(async () => {
  await clients.close();
  await engine.close();
});

const llama = (index: number, delta: object, finish: string | null, predicted: number) => `data: ${JSON.stringify({ choices: [{ finish_reason: finish, index, delta }], id: 'x', model: '/models/a.gguf', object: 'chat.completion.chunk', timings: { cache_n: 1, prompt_n: 4, predicted_n: predicted } })}\r\n\r\n`;

/** Two choices, interleaved, cut in the middle of lines and of a character, as a socket may deliver them. */
const twoChoices: EngineBehaviour = async ({ response }) => {
  startStream(response);
  const text = llama(0, { role: 'assistant', content: null }, null, 1) + llama(1, { role: 'assistant', content: null }, null, 1) + llama(0, { content: 'é€' }, null, 1) + llama(1, { content: '😀' }, null, 2) + llama(0, {}, 'stop', 2) + llama(1, {}, 'length', 3);
  const bytes = Buffer.from(`${text}data: [DONE]\r\n\r\n`);
  for (let start = 0; start < bytes.length; start += 7) {
    response.write(bytes.subarray(start, start + 7));
    if (start % 70 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
};

async function run(stream: boolean, url = engine.url): Promise<{ outcome: AttemptOutcome; joiner: ChatJoiner }> {
  const lease: Lease = { leaseId: 'l', endpointId: 'ep', replicaId: 'rep', modelVersionId: 'mv', url, engine: 'llama.cpp', servedModel: 'm', expiresAtMs: 0, queuedMs: 0, coldStart: false };
  const joiner = new ChatJoiner();
  const attempt = new EngineAttempt({
    lease, body: '{}', origin: { requestId: 'req_1', traceparent: undefined }, clients, identity: { id: 'chatcmpl-1', created: 1, model: 'public' }, stream, includeUsage: false, tokensMax: 100, clock: { now: () => 0 },
    limits: { firstTokenMs: 1_000, chunkGapMs: 1_000, totalMs: 1_000 },
    asText: false,
    sink: {
      onChunks: (chunks) => {
        for (const chunk of chunks) joiner.add(chunk);
        return true;
      },
      onText: () => true,
    },
  });
  const outcome = await attempt.run();
  return { outcome, joiner };
}

describe('EngineAttempt', () => {
  test('reads a stream however it is cut, and counts both choices of an engine that reports each alone', async () => {
    engine.behaviours = [twoChoices];
    const { outcome, joiner } = await run(true);
    if (outcome.kind !== 'completed') throw new Error(JSON.stringify(outcome));
    for (const chunk of outcome.tail) joiner.add(chunk);
    expect(outcome.usage).toMatchObject({ promptTokens: 5, cachedTokens: 1, completionTokens: 5 });
    expect(joiner.answer({ id: 'i', created: 1, model: 'm' }, outcome.usage).choices).toMatchObject([{ index: 0, message: { content: 'é€' }, finish_reason: 'stop' }, { index: 1, message: { content: '😀' }, finish_reason: 'length' }]);
  });

  test.each<[string, string, EngineBehaviour]>([
    ['loading', 'model_loading', ({ response }) => void response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}')],
    ['a context that is too short', 'context_length_exceeded', ({ response }) => void response.writeHead(400).end('{"error":{"code":400,"message":"x","type":"exceed_context_size_error","n_prompt_tokens":3000,"n_ctx":2048}}')],
    ['a page of HTML', 'replica_failed', ({ response }) => void response.writeHead(502).end('<html>')],
    ['an endless error body', 'replica_failed', ({ response }) => { response.writeHead(500); response.write('x'.repeat(200_000)); }],
    ['a broken connection', 'replica_failed', ({ response }) => void response.socket?.destroy()],
  ])('%s becomes %s', async (_name, code, behaviour) => {
    engine.behaviours = [behaviour];
    expect((await run(true)).outcome).toMatchObject({ kind: 'failed', fault: { code } });
  });

  test('a replica that is gone is a failure that another one may make good', async () => {
    const { url } = engine;
    await engine.close();
    expect((await run(false, url)).outcome).toMatchObject({ kind: 'failed', fault: { code: 'replica_failed', retryElsewhere: true } });
    engine = await FakeEngine.start();
  });
});
