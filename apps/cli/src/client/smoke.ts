import { setTimeout as pause } from 'node:timers/promises';
import { usagePage } from '@penstock/contract-http';
import OpenAI from 'openai';
import { ApiClient } from './api-client.js';

export interface SmokeTarget {
  readonly url: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly model: string;
}

export interface SmokeAnswer {
  readonly streamed: boolean;
  readonly text: string;
  readonly requestId: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly ttftMs: number | undefined;
  readonly totalMs: number;
  /** What ClickHouse has for this request; undefined when nothing arrived in time. */
  readonly recorded: { readonly promptTokens: number; readonly completionTokens: number; readonly requests: number } | undefined;
}

export interface SmokeResult {
  readonly answers: readonly SmokeAnswer[];
  /** Every answer has text, and ClickHouse agrees with it to the token. */
  readonly agrees: boolean;
}

const QUESTION = [{ role: 'user' as const, content: 'What is the capital of France? Answer in one short sentence.' }];
const TOKENS_MAX = 48;
const USAGE_WAIT_MS = 30_000;
const USAGE_POLL_MS = 100;
const HOUR_SECONDS = 3_600;

/** Asks the same question twice with the official SDK, and reads the usage of each answer back from ClickHouse. */
export async function askSmokeQuestions(target: SmokeTarget): Promise<SmokeResult> {
  const client = new OpenAI({ baseURL: `${target.url}/v1`, apiKey: target.apiKey, maxRetries: 0 });
  const answers = [await askStreamed(client, target), await askUnstreamed(client, target)];
  const agrees = answers.every((answer) =>
    answer.text.trim().length > 0 && answer.completionTokens > 0 && answer.recorded?.requests === 1 &&
    answer.recorded.promptTokens === answer.promptTokens && answer.recorded.completionTokens === answer.completionTokens,
  );
  return { answers, agrees };
}

async function askStreamed(client: OpenAI, target: SmokeTarget): Promise<SmokeAnswer> {
  const startedMs = performance.now();
  const { data: stream, request_id: requestId } = await client.chat.completions
    .create({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX, temperature: 0, stream: true, stream_options: { include_usage: true } })
    .withResponse();
  let text = '';
  let ttftMs: number | undefined;
  let usage: OpenAI.CompletionUsage | null | undefined;
  for await (const chunk of stream) {
    const content = chunk.choices[0]?.delta.content ?? '';
    if (content.length > 0) ttftMs ??= performance.now() - startedMs;
    text += content;
    usage = chunk.usage ?? usage;
  }
  return withRecorded(target, { streamed: true, text, requestId: requestId ?? '', promptTokens: usage?.prompt_tokens ?? 0, completionTokens: usage?.completion_tokens ?? 0, ttftMs, totalMs: performance.now() - startedMs });
}

async function askUnstreamed(client: OpenAI, target: SmokeTarget): Promise<SmokeAnswer> {
  const startedMs = performance.now();
  const { data: answer, request_id: requestId } = await client.chat.completions.create({ model: target.model, messages: QUESTION, max_tokens: TOKENS_MAX, temperature: 0 }).withResponse();
  return withRecorded(target, {
    streamed: false,
    text: answer.choices[0]?.message.content ?? '',
    requestId: requestId ?? '',
    promptTokens: answer.usage?.prompt_tokens ?? 0,
    completionTokens: answer.usage?.completion_tokens ?? 0,
    ttftMs: undefined,
    totalMs: performance.now() - startedMs,
  });
}

async function withRecorded(target: SmokeTarget, answer: Omit<SmokeAnswer, 'recorded'>): Promise<SmokeAnswer> {
  const client = new ApiClient(target);
  const query = new URLSearchParams({ start_time: String(Math.floor(Date.now() / 1_000) - HOUR_SECONDS), bucket_width: '1h', request_id: answer.requestId });
  const deadline = performance.now() + USAGE_WAIT_MS;
  while (performance.now() < deadline) {
    const page = await client.call('GET', `/v1/organization/usage/completions?${query}`, usagePage);
    const [result] = page.data.flatMap((bucket) => bucket.results);
    if (result !== undefined) return { ...answer, recorded: { promptTokens: result.input_tokens, completionTokens: result.output_tokens, requests: result.num_model_requests } };
    await pause(USAGE_POLL_MS);
  }
  return { ...answer, recorded: undefined };
}
