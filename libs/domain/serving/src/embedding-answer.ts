import { decodeFloats } from './base64-floats.js';
import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault } from './engine-fault.js';
import { readOptionalReply } from './engine-reply.js';
import { countAt, isRecord, recordAt } from './json-fields.js';
import { outlineJson, type JsonMember } from './json-outline.js';

export interface EmbeddingExpectation {
  readonly dialect: EngineDialect;
  /** The public name. */
  readonly model: string;
  readonly count: number;
  readonly format: 'float' | 'base64';
  /** What the caller asked for; undefined for the model's own. */
  readonly dimensions: number | undefined;
}

export type EmbeddingReading = { readonly kind: 'answer'; readonly body: string; readonly promptTokens: number | undefined } | { readonly kind: 'fault'; readonly fault: EngineFault };

/** Numbers of one answer: 2,048 vectors of 4,096 and what is around them. */
const ANSWER_VALUES_MAX = 20_000_000;
const DEPTH_MAX = 8;
const WHAT = 'make embeddings';

/**
 * Turns an engine's vectors into OpenAI's answer. Vectors of numbers pass as the engine wrote them: reading and writing
 * thousands of numbers again would cost more than all the rest, and could change their last digits.
 */
export function readEmbeddings(status: number, text: string, expected: EmbeddingExpectation): EmbeddingReading {
  if (status < 400 && expected.format === 'float' && expected.dimensions === undefined) {
    const passed = passFloats(text, expected);
    if (passed !== undefined) return passed;
  }
  const reply = readOptionalReply(status, text, expected.dialect, WHAT);
  if (reply.kind === 'fault') return reply;
  const items = isRecord(reply.body) && Array.isArray(reply.body['data']) ? (reply.body['data'] as unknown[]).filter(isRecord) : [];
  if (items.length !== expected.count) return broken;
  const data: { object: 'embedding'; index: number; embedding: readonly number[] | string }[] = [];
  for (const [position, item] of items.entries()) {
    const { embedding } = item;
    const length = lengthOf(embedding);
    if (length === undefined || (typeof embedding === 'string') !== (expected.format === 'base64')) return broken;
    if (expected.dimensions !== undefined && length !== expected.dimensions) return { kind: 'fault', fault: dimensionsFault(length) };
    data.push({ object: 'embedding', index: countAt(item, 'index') ?? position, embedding: embedding as readonly number[] | string });
  }
  const promptTokens = countAt(recordAt(reply.body, 'usage'), 'prompt_tokens');
  return { kind: 'answer', body: JSON.stringify({ object: 'list', data, model: expected.model, usage: usageOf(promptTokens) }), promptTokens };
}

/** Vectors of an engine that was asked for base64, to compute with. */
export function readVectors(status: number, text: string, dialect: EngineDialect, count: number): { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[]; readonly promptTokens: number | undefined } | { readonly kind: 'fault'; readonly fault: EngineFault } {
  const reply = readOptionalReply(status, text, dialect, WHAT);
  if (reply.kind === 'fault') return reply;
  const items = isRecord(reply.body) && Array.isArray(reply.body['data']) ? (reply.body['data'] as unknown[]).filter(isRecord) : [];
  const vectors: Float32Array[] = [];
  for (const [position, item] of items.entries()) {
    const vector = typeof item['embedding'] === 'string' ? decodeFloats(item['embedding']) : undefined;
    if (vector === undefined || vector.length === 0) return broken;
    vectors[countAt(item, 'index') ?? position] = vector;
  }
  if (vectors.length !== count || Array.from(vectors).some((vector) => vector === undefined)) return broken;
  return { kind: 'vectors', vectors, promptTokens: countAt(recordAt(reply.body, 'usage'), 'prompt_tokens') };
}

/** The answer with the engine's own list; undefined when it is not clean enough for that. */
function passFloats(text: string, expected: EmbeddingExpectation): EmbeddingReading | undefined {
  const outline = outlineJson(text, DEPTH_MAX, ANSWER_VALUES_MAX);
  if (outline.kind !== 'outline') return undefined;
  const members = new Map<string, JsonMember>(outline.members.map((member) => [member.key, member]));
  const [data, usage] = [members.get('data'), members.get('usage')];
  if (data === undefined || usage === undefined || members.has('error')) return undefined;
  const list = text.slice(data.valueStart, data.end);
  // A model that is no embedding model answers nulls, some servers a list in a list; base64 would be a string.
  if (list.includes('null') || list.includes('[[') || list.includes('encoding_format') || occurrences(list, '"embedding":[') !== expected.count) return undefined;
  let promptTokens: number | undefined;
  try {
    promptTokens = countAt(JSON.parse(text.slice(usage.valueStart, usage.end)), 'prompt_tokens');
  } catch {
    return undefined;
  }
  return { kind: 'answer', body: `{"object":"list","data":${list},"model":${JSON.stringify(expected.model)},"usage":${JSON.stringify(usageOf(promptTokens))}}`, promptTokens };
}

function occurrences(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

/** Dimensions of a vector; undefined when it is none. */
function lengthOf(embedding: unknown): number | undefined {
  if (typeof embedding === 'string') return decodeFloats(embedding)?.length;
  return Array.isArray(embedding) && embedding.length > 0 && embedding.every((value) => typeof value === 'number') ? embedding.length : undefined;
}

function usageOf(promptTokens: number | undefined): { readonly prompt_tokens: number; readonly total_tokens: number } {
  return { prompt_tokens: promptTokens ?? 0, total_tokens: promptTokens ?? 0 };
}

function dimensionsFault(length: number): EngineFault {
  return { code: 'unsupported_value', message: `This model does not support specifying dimensions: its vectors have ${length}. Leave 'dimensions' out.`, param: 'dimensions', retryElsewhere: false };
}

const broken = { kind: 'fault', fault: brokenAnswerFault } as const;
