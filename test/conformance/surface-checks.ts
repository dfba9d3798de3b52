import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { detokenizeAnswer, embeddingList, openAiErrorBody, rerankAnswer, responseObject, scoreAnswer, textCompletion, tokenizeAnswer } from '@penstock/contract-http';
import type OpenAI from 'openai';
import { until } from '../platform/eventually.js';
import type { Check, Target } from './check.js';
import type { OpenAiPackage } from './openai-node-checks.js';

const TOKENS_MAX = 12;
const BATCH_WAIT_MS = 60_000;
const GUITAR = 'A man is playing a guitar on stage.';

/** The rest of OpenAI's surface through its client, and what other servers add to it as plain HTTP. Every body is held against its contract. */
export function surfaceChecks({ OpenAI: Client }: OpenAiPackage): readonly Check[] {
  const clientOf = (target: Target): OpenAI => new Client({ baseURL: target.baseUrl, apiKey: target.apiKey, maxRetries: 0 });
  return [
    { name: 'completions, whole', run: (target) => completes(clientOf(target), target) },
    { name: 'completions, streamed with usage', run: (target) => streamsCompletion(clientOf(target), target) },
    { name: 'completions of several prompts and choices', run: (target) => completesMany(clientOf(target), target) },
    { name: 'completions with logprobs', run: (target) => completesWithLogprobs(clientOf(target), target) },
    { name: 'completions with the prompt before them', run: async (target) => ok((await clientOf(target).completions.create({ model: target.model, prompt: 'Once upon a time', max_tokens: 4, echo: true })).choices[0]?.text.startsWith('Once upon a time')) },
    { name: 'a prompt that is too long is a context error', run: (target) => overflows(target) },
    { name: 'responses, whole', run: (target) => responds(clientOf(target), target) },
    { name: 'responses, streamed', run: (target) => streamsResponse(clientOf(target), target) },
    { name: 'responses are stored, gone on from and deleted', run: (target) => storesResponse(clientOf(target), target) },
    { name: 'the input of a response is counted', run: (target) => countsInput(clientOf(target), target) },
    { name: 'a batch job of responses', run: (target) => respondsInBatch(clientOf(target), target) },
    { name: 'tokenize and back', run: (target) => tokenizes(target) },
    { name: 'what a model cannot read is the caller\'s fault', run: (target) => refusesUnreadable(target) },
    { name: 'compressed bodies', run: (target) => takesCompressed(target) },
    { name: 'null means not set', run: (target) => takesNulls(target) },
    { name: 'embeddings as base64, numbers and token lists', needs: 'embeddings', run: (target) => embeds(clientOf(target), target) },
    { name: 'embeddings of empty, long and narrow inputs are refused', needs: 'embeddings', run: (target) => refusesEmbeddings(target) },
    { name: 'rerank and score', needs: 'embeddings', run: (target) => ranks(target) },
    { name: 'a batch job of embeddings', needs: 'embeddings', run: (target) => embedsInBatch(clientOf(target), target) },
    { name: 'a model is not asked for what it cannot do', needs: 'embeddings', run: (target) => refusesOther(target) },
  ];
}

async function completes(client: OpenAI, target: Target): Promise<void> {
  const answer = textCompletion.parse(await client.completions.create({ model: target.model, prompt: 'The capital of France is', max_tokens: TOKENS_MAX, temperature: 0 }));
  strictEqual(answer.model, target.model);
  ok((answer.choices[0]?.text ?? '').length > 0 && answer.choices[0]?.finish_reason !== null);
  ok((answer.usage?.prompt_tokens ?? 0) > 0 && (answer.usage?.completion_tokens ?? 0) <= TOKENS_MAX);
}

async function streamsCompletion(client: OpenAI, target: Target): Promise<void> {
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of await client.completions.create({ model: target.model, prompt: 'The capital of France is', max_tokens: TOKENS_MAX, stream: true, stream_options: { include_usage: true } })) chunks.push(chunk);
  for (const chunk of chunks) textCompletion.parse(chunk);
  strictEqual(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size, 1);
  strictEqual(chunks.filter((chunk) => chunk.choices[0]?.finish_reason).length, 1);
  deepStrictEqual(chunks.at(-1)?.choices, []);
  ok((chunks.at(-1)?.usage?.completion_tokens ?? 0) > 0);
}

async function completesMany(client: OpenAI, target: Target): Promise<void> {
  const prompts = ['Red is a', 'Two and two is'];
  const answer = await client.completions.create({ model: target.model, prompt: prompts, n: 2, max_tokens: 4, temperature: 1 });
  deepStrictEqual(answer.choices.map((choice) => choice.index), [0, 1, 2, 3]);
  ok((answer.usage?.completion_tokens ?? 0) >= answer.choices.filter((choice) => choice.finish_reason === 'length').length * 4, 'not every choice was counted');
}

async function completesWithLogprobs(client: OpenAI, target: Target): Promise<void> {
  const answer = textCompletion.parse(await client.completions.create({ model: target.model, prompt: 'The capital of France is', max_tokens: 4, temperature: 0, logprobs: 2 }));
  const logprobs = answer.choices[0]?.logprobs;
  ok(logprobs !== null && logprobs !== undefined && logprobs.tokens.length > 0, 'no logprobs came');
  strictEqual(logprobs.token_logprobs.length, logprobs.tokens.length);
  ok(logprobs.token_logprobs.every((value) => value === null || value <= 0), 'a logprob is above 0');
}

async function overflows(target: Target): Promise<void> {
  const { error } = openAiErrorBody.parse(await post(target, '/completions', { model: target.model, prompt: 'word '.repeat(20_000), max_tokens: 1 }, 400));
  deepStrictEqual([error.code, error.param], ['context_length_exceeded', 'prompt']);
}

async function responds(client: OpenAI, target: Target): Promise<void> {
  const answer = await client.responses.create({ model: target.model, instructions: 'Answer in English.', input: [{ role: 'user', content: [{ type: 'input_text', text: 'What is the capital of France?' }] }], max_output_tokens: 24 });
  responseObject.parse(answer);
  ok(answer.output_text.length > 0 && (answer.usage?.output_tokens ?? 0) > 0);
  strictEqual(answer.status, answer.incomplete_details === null ? 'completed' : 'incomplete');
}

async function streamsResponse(client: OpenAI, target: Target): Promise<void> {
  const stream = client.responses.stream({ model: target.model, input: 'What is the capital of France?', max_output_tokens: 24 });
  const numbers: number[] = [];
  let text = '';
  for await (const event of stream) {
    numbers.push(event.sequence_number);
    if (event.type === 'response.output_text.delta') text += event.delta;
  }
  deepStrictEqual(numbers, numbers.map((_, index) => index));
  strictEqual((await stream.finalResponse()).output_text, text);
}

async function storesResponse(client: OpenAI, target: Target): Promise<void> {
  const first = await client.responses.create({ model: target.model, input: 'Say one word.', max_output_tokens: 8, store: true });
  strictEqual((await client.responses.retrieve(first.id)).output_text, first.output_text);
  const next = await client.responses.create({ model: target.model, input: 'Another one.', previous_response_id: first.id, max_output_tokens: 8 });
  ok((next.usage?.input_tokens ?? 0) > (first.usage?.input_tokens ?? 0), 'the earlier response is not part of the prompt');
  await client.responses.delete(first.id);
  await post(target, '/responses', { model: target.model, input: 'x', previous_response_id: first.id }, 404);
}

async function tokenizes(target: Target): Promise<void> {
  const { tokens, count } = tokenizeAnswer.parse(await post(target, '/tokenize', { model: target.model, prompt: 'hello world', add_special_tokens: false }));
  strictEqual(tokens.length, count);
  // The simulated engine cuts text into pieces that it cannot put together again.
  if (target.engine === 'engine-sim') return;
  strictEqual(detokenizeAnswer.parse(await post(target, '/detokenize', { model: target.model, tokens })).prompt.trim(), 'hello world');
  ok(tokenizeAnswer.parse(await post(target, '/tokenize', { model: target.model, messages: [{ role: 'user', content: 'hello world' }] })).count > count, 'the chat template adds nothing');
}

/** An engine that fails on these would be taken for a broken one, and every caller of it would pay. */
async function refusesUnreadable(target: Target): Promise<void> {
  // The simulated engine reads everything.
  if (target.engine !== 'llama.cpp') return;
  const messages = [{ role: 'user', content: 'hi' }];
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const answers = await Promise.all([
    post(target, '/chat/completions', { model: target.model, messages: [{ role: 'user', content: [image] }] }, 400),
    post(target, '/chat/completions', { model: target.model, messages, tools: [{ type: 'custom', custom: { name: 'x' } }] }, 400),
    post(target, '/detokenize', { model: target.model, tokens: [9_999_999] }, 400),
  ]);
  deepStrictEqual(answers.map((body) => openAiErrorBody.parse(body).error.code), ['unsupported_value', 'request_rejected_by_engine', 'request_rejected_by_engine']);
}

async function takesCompressed(target: Target): Promise<void> {
  const body = Buffer.from(JSON.stringify({ model: target.model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 1 }));
  for (const [encoding, compressed] of [['gzip', gzipSync(body)], ['zstd', zstdCompressSync(body)]] as const) {
    const response = await fetch(`${target.baseUrl}/chat/completions`, { method: 'POST', headers: { ...headersOf(target), 'content-encoding': encoding }, body: compressed as unknown as NonNullable<RequestInit['body']> });
    strictEqual(response.status, 200, `${encoding}: ${await response.text()}`);
  }
}

async function takesNulls(target: Target): Promise<void> {
  const nothing = { temperature: null, top_p: null, stop: null, n: null, seed: null, logprobs: null, tools: null, tool_choice: null, response_format: null, stream: null, stream_options: null, user: null };
  await post(target, '/chat/completions', { model: target.model, messages: [{ role: 'user', content: 'hi' }], max_tokens: 1, ...nothing });
  await post(target, '/completions', { model: target.model, prompt: 'hi', max_tokens: 1, temperature: null, top_p: null, stop: null, n: null, best_of: null, suffix: null, echo: null, logprobs: null, stream: null, stream_options: null, user: null });
}

async function embeds(client: OpenAI, target: Target): Promise<void> {
  const model = target.embeddingModel ?? '';
  // The client asks for base64 unless told otherwise, and unpacks it.
  const unpacked = await client.embeddings.create({ model, input: [GUITAR, 'Stocks fell.'] });
  const numbers = embeddingList.parse(await client.embeddings.create({ model, input: [GUITAR], encoding_format: 'float' }));
  const [left, right] = [unpacked.data[0]?.embedding ?? [], numbers.data[0]?.embedding as readonly number[]];
  ok(left.length > 1 && left.length === right.length);
  // A text alone and the same text among others differ in the fourth digit.
  ok(left.every((value, index) => Math.abs(value - (right[index] ?? 0)) < 1e-3), 'base64 and numbers differ');
  strictEqual(numbers.model, model);
  ok(numbers.usage.prompt_tokens > 0);
  strictEqual((await client.embeddings.create({ model, input: [[101, 2158, 102], [101, 102]] })).data.length, 2);
}

async function refusesEmbeddings(target: Target): Promise<void> {
  const model = target.embeddingModel ?? '';
  for (const input of ['', ['a', ''], [], Array.from({ length: 2_049 }, () => 'a')]) await post(target, '/embeddings', { model, input }, 400);
  for (const words of [600, 5_000]) {
    const { error } = openAiErrorBody.parse(await post(target, '/embeddings', { model, input: ['short', 'word '.repeat(words)] }, 400));
    deepStrictEqual([error.code, error.param], ['context_length_exceeded', 'input']);
  }
  const { error } = openAiErrorBody.parse(await post(target, '/embeddings', { model, input: 'a', dimensions: 7 }, 400));
  strictEqual(error.param, 'dimensions');
}

async function ranks(target: Target): Promise<void> {
  const model = target.embeddingModel ?? '';
  const documents = ['The stock market fell.', 'Someone performs music on a guitar.', 'Reset your password here.'];
  const ranked = rerankAnswer.parse(await post(target, '/rerank', { model, query: GUITAR, documents }));
  deepStrictEqual(ranked.results[0]?.index, 1);
  strictEqual(rerankAnswer.parse(await post(target, '/rerank', { model, query: GUITAR, documents, top_n: 2 })).results.length, 2);
  const scores = scoreAnswer.parse(await post(target, '/score', { model, text_1: GUITAR, text_2: documents }));
  ok((scores.data[1]?.score ?? 0) > (scores.data[0]?.score ?? 1));
}

async function embedsInBatch(client: OpenAI, target: Target): Promise<void> {
  const bodies = ['one', 'two'].map((input) => ({ model: target.embeddingModel, input, encoding_format: 'float' }));
  for (const answer of await answersInBatch(client, '/v1/embeddings', bodies)) embeddingList.parse(answer);
}

async function respondsInBatch(client: OpenAI, target: Target): Promise<void> {
  const bodies = ['one', 'two'].map((input) => ({ model: target.model, input, max_output_tokens: 4 }));
  for (const answer of await answersInBatch(client, '/v1/responses', bodies)) responseObject.parse(answer);
}

/** What the lines of a batch job were answered, once it is complete; its files are asked to go after an hour. */
async function answersInBatch(client: OpenAI, endpoint: '/v1/embeddings' | '/v1/responses', bodies: readonly object[]): Promise<unknown[]> {
  const lines = bodies.map((body, index) => JSON.stringify({ custom_id: `line-${index}`, method: 'POST', url: endpoint, body }));
  const file = await client.files.create({ file: new File([lines.join('\n')], 'lines.jsonl'), purpose: 'batch' });
  const { id } = await client.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h', output_expires_after: { anchor: 'created_at', seconds: 3_600 } });
  const batch = await until('the batch ended', BATCH_WAIT_MS, async () => {
    const now = await client.batches.retrieve(id);
    return ['completed', 'failed', 'expired', 'cancelled'].includes(now.status) ? now : undefined;
  });
  strictEqual(batch.status, 'completed', JSON.stringify(batch.errors));
  deepStrictEqual(batch.request_counts, { total: bodies.length, completed: bodies.length, failed: 0 });
  const output = await client.files.retrieve(batch.output_file_id ?? '');
  strictEqual((output.expires_at ?? 0) - output.created_at, 3_600);
  const text = await (await client.files.content(output.id)).text();
  return text.trim().split('\n').map((line) => (JSON.parse(line) as { response: { body: unknown } }).response.body);
}

/** As many as the answer itself counts later, instructions and all. */
async function countsInput(client: OpenAI, target: Target): Promise<void> {
  for (const more of [{}, { instructions: 'Answer in one word, and in capital letters.' }]) {
    const asked = { model: target.model, input: 'What is the capital of France?', ...more };
    const { input_tokens: counted } = await client.responses.inputTokens.count(asked);
    const { usage } = await client.responses.create({ ...asked, max_output_tokens: 1 });
    ok(counted > 0);
    // The simulated engine counts the words of a chat otherwise than those of its template.
    if (target.engine !== 'engine-sim') strictEqual(counted, usage?.input_tokens);
  }
}

async function refusesOther(target: Target): Promise<void> {
  const codes = await Promise.all([
    post(target, '/chat/completions', { model: target.embeddingModel, messages: [{ role: 'user', content: 'hi' }] }, 400),
    post(target, '/embeddings', { model: target.model, input: 'hi' }, 400),
    post(target, '/classify', { model: target.embeddingModel, input: 'hi' }, 400),
  ]);
  deepStrictEqual(codes.map((body) => openAiErrorBody.parse(body).error.code), ['unsupported_operation', 'unsupported_operation', 'unsupported_operation']);
}

function headersOf({ apiKey }: Target): Record<string, string> {
  return { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
}

async function post(target: Target, path: string, body: object, status = 200): Promise<unknown> {
  const response = await fetch(target.baseUrl + path, { method: 'POST', headers: headersOf(target), body: JSON.stringify(body) });
  const text = await response.text();
  strictEqual(response.status, status, `${path}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as unknown;
}
