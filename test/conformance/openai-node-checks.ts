import { ok, strictEqual } from 'node:assert/strict';
import type OpenAI from 'openai';
import { canonicalJson } from '../contracts/json-schema.js';
import type { Check, Target } from './check.js';

/** The constructor of either major version of the official package; what is used here has the same shape in both. */
export interface OpenAiPackage {
  readonly OpenAI: typeof OpenAI;
}

const QUESTION = [{ role: 'user' as const, content: 'What is the capital of France? Answer in one sentence.' }];
const TOKENS_MAX = 24;
const BATCH_WAIT_MS = 120_000;
const BATCH_POLL_MS = 250;

/** The official JavaScript client, as a user writes it. */
export function openAiNodeChecks({ OpenAI: Client }: OpenAiPackage): readonly Check[] {
  const clientOf = (target: Target, apiKey = target.apiKey): OpenAI => new Client({ baseURL: target.baseUrl, apiKey, maxRetries: 0 });
  return [
    { name: 'models.list names the model', run: (target) => listsModels(clientOf(target), target) },
    { name: 'models.retrieve answers one model', run: async (target) => strictEqual((await clientOf(target).models.retrieve(target.model)).id, target.model) },
    { name: 'chat, unstreamed', run: (target) => chats(clientOf(target), target) },
    { name: 'chat, streamed', run: (target) => streams(clientOf(target), target) },
    { name: 'chat, streamed without usage', run: (target) => streamsWithoutUsage(clientOf(target), target) },
    { name: 'the stream helper accepts the stream', run: (target) => streamsWithHelper(clientOf(target), target) },
    { name: 'two choices are both counted', run: (target) => countsChoices(clientOf(target), target) },
    { name: 'every answer has a request id', run: async (target) => ok((await clientOf(target).models.list().withResponse()).request_id?.startsWith('req_')) },
    { name: 'a wrong key is an AuthenticationError', run: (target) => refusedWith(() => clientOf(target, 'sk-ps-wrong').models.list(), Client.AuthenticationError, 'invalid_api_key') },
    { name: 'an unknown model is a NotFoundError', run: (target) => refusedWith(() => clientOf(target).chat.completions.create({ model: 'no-such-model', messages: QUESTION }), Client.NotFoundError, 'model_not_found') },
    { name: 'a bad parameter is a BadRequestError that names it', run: (target) => refusedWith(() => clientOf(target).chat.completions.create({ model: target.model, messages: QUESTION, temperature: 9 }), Client.BadRequestError, undefined, 'temperature') },
    { name: 'no messages is a BadRequestError that names them', run: (target) => refusedWith(() => clientOf(target).chat.completions.create({ model: target.model, messages: [] }), Client.BadRequestError, 'empty_array', 'messages') },
    { name: 'an abandoned stream ends', run: (target) => abandons(clientOf(target), target) },
    { name: 'a file is uploaded in parts', run: (target) => uploadsInParts(clientOf(target)) },
    { name: 'files and a batch job run to completion', run: (target) => runsBatch(clientOf(target), target) },
  ];
}

async function uploadsInParts(client: OpenAI): Promise<void> {
  const pieces = ['{"custom_id":"1",', '"method":"POST"}\n'];
  const upload = await client.uploads.create({ filename: 'parts.jsonl', purpose: 'batch', bytes: pieces.join('').length, mime_type: 'application/jsonl' });
  strictEqual(upload.status, 'pending');
  const parts = await Promise.all(pieces.map((piece) => client.uploads.parts.create(upload.id, { data: new File([piece], 'part') })));
  const { status, file } = await client.uploads.complete(upload.id, { part_ids: parts.map((part) => part.id) });
  strictEqual(status, 'completed');
  strictEqual(await (await client.files.content(file?.id ?? '')).text(), pieces.join(''));
  await client.files.delete(file?.id ?? '');
}

async function listsModels(client: OpenAI, target: Target): Promise<void> {
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  ok(ids.includes(target.model), `${target.model} is not among ${ids.join(', ')}`);
}

async function chats(client: OpenAI, target: Target): Promise<void> {
  const answer = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX, temperature: 0 });
  strictEqual(answer.object, 'chat.completion');
  strictEqual(answer.model, target.model);
  ok((answer.choices[0]?.message.content ?? '').length > 0, 'the answer is empty');
  ok(['stop', 'length'].includes(answer.choices[0]?.finish_reason ?? ''));
  const usage = answer.usage;
  ok(usage !== undefined && usage.prompt_tokens > 0 && usage.completion_tokens > 0 && usage.completion_tokens <= TOKENS_MAX);
  strictEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
}

async function streams(client: OpenAI, target: Target): Promise<void> {
  const stream = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX, stream: true, stream_options: { include_usage: true } });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  strictEqual(new Set(chunks.map((chunk) => chunk.id)).size, 1, 'the id changes');
  strictEqual(new Set(chunks.map((chunk) => chunk.created)).size, 1, 'created changes');
  sameJson([...new Set(chunks.map((chunk) => chunk.model))], [target.model]);
  strictEqual(chunks.filter((chunk) => chunk.choices[0]?.delta.role !== undefined).length, 1, 'the role comes once');
  strictEqual(chunks[0]?.choices[0]?.delta.role, 'assistant');
  ok(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('').length > 0, 'no content came');
  strictEqual(chunks.filter((chunk) => chunk.choices[0]?.finish_reason).length, 1, 'one finish reason');
  const last = chunks.at(-1);
  sameJson(last?.choices, []);
  ok((last?.usage?.completion_tokens ?? 0) > 0);
  ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null), 'earlier chunks carry usage: null');
}

async function streamsWithoutUsage(client: OpenAI, target: Target): Promise<void> {
  const stream = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX, stream: true });
  for await (const chunk of stream) {
    strictEqual('usage' in chunk, false, 'usage was not asked for');
    strictEqual(chunk.choices.length, 1);
  }
}

async function streamsWithHelper(client: OpenAI, target: Target): Promise<void> {
  const runner = client.chat.completions.stream({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX });
  const final = await runner.finalChatCompletion();
  ok((final.choices[0]?.message.content ?? '').length > 0);
}

async function countsChoices(client: OpenAI, target: Target): Promise<void> {
  const answer = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: 8, n: 2, temperature: 1 });
  strictEqual(answer.choices.length, 2);
  const capped = answer.choices.filter((choice) => choice.finish_reason === 'length').length;
  ok((answer.usage?.completion_tokens ?? 0) >= capped * 8, `usage ${answer.usage?.completion_tokens} does not cover ${capped} full choices`);
}

async function refusedWith(call: () => Promise<unknown>, kind: new (...args: never[]) => Error, code?: string, param?: string): Promise<void> {
  const error = await call().then(() => undefined, (reason: unknown) => reason);
  ok(error instanceof kind, `expected ${kind.name}, got ${String(error)}`);
  const { code: actualCode, param: actualParam, requestID } = error as unknown as { code?: string; param?: string; requestID?: string };
  if (code !== undefined) strictEqual(actualCode, code);
  if (param !== undefined) strictEqual(actualParam, param);
  ok(requestID !== undefined && requestID !== null, 'the error has no request id');
}

async function abandons(client: OpenAI, target: Target): Promise<void> {
  const stream = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: 512, stream: true });
  for await (const chunk of stream) if ((chunk.choices[0]?.delta.content ?? '').length > 0) break;
  stream.controller.abort();
  // The slot is free again when the next request is answered.
  await chats(client, target);
}

async function runsBatch(client: OpenAI, target: Target): Promise<void> {
  const lines = [1, 2, 3].map((index) => JSON.stringify({ custom_id: `line-${index}`, method: 'POST', url: '/v1/chat/completions', body: { model: target.model, messages: QUESTION, max_tokens: 8 } }));
  const file = await client.files.create({ file: new File([lines.join('\n')], 'данные.jsonl'), purpose: 'batch' });
  strictEqual(file.filename, 'данные.jsonl');
  let batch = await client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' });
  const deadline = Date.now() + BATCH_WAIT_MS;
  while (!['completed', 'failed', 'expired', 'cancelled'].includes(batch.status) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, BATCH_POLL_MS));
    batch = await client.batches.retrieve(batch.id);
  }
  strictEqual(batch.status, 'completed', JSON.stringify(batch.errors));
  sameJson(batch.request_counts, { total: 3, completed: 3, failed: 0 });
  const output = await (await client.files.content(batch.output_file_id ?? '')).text();
  const ids = output.trim().split('\n').map((line) => (JSON.parse(line) as { custom_id: string }).custom_id);
  sameJson(ids.sort(), ['line-1', 'line-2', 'line-3']);
}

/** Equal as JSON: what matters on the wire, whatever realm the objects were made in. */
function sameJson(actual: unknown, expected: unknown): void {
  strictEqual(canonicalJson(actual), canonicalJson(expected));
}
