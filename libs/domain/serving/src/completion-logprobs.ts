import type { CompletionLogprobs } from '@penstock/contract-http';
import { isRecord } from './json-fields.js';

/**
 * Brings an engine's logprobs of a piece of text into the shape of completions, whether it has that shape already or that of a
 * chat (`content` with one entry for each token). `offset` is where the piece begins, in characters.
 */
export function toCompletionLogprobs(value: unknown, offset: number): CompletionLogprobs | null {
  if (!isRecord(value)) return null;
  if (Array.isArray(value['tokens'])) return ownShape(value, value['tokens'], offset);
  return Array.isArray(value['content']) ? chatShape(value['content'].filter(isRecord), offset) : null;
}

/** Puts the pieces of one choice together. */
export function joinCompletionLogprobs(before: CompletionLogprobs | null, next: CompletionLogprobs | null): CompletionLogprobs | null {
  if (before === null || next === null) return before ?? next;
  return {
    text_offset: [...before.text_offset, ...next.text_offset],
    token_logprobs: [...before.token_logprobs, ...next.token_logprobs],
    tokens: [...before.tokens, ...next.tokens],
    top_logprobs: before.top_logprobs === null || next.top_logprobs === null ? null : [...before.top_logprobs, ...next.top_logprobs],
  };
}

function ownShape(value: Readonly<Record<string, unknown>>, tokens: readonly unknown[], offset: number): CompletionLogprobs {
  const texts = tokens.map((token) => (typeof token === 'string' ? token : ''));
  return {
    text_offset: offsetsOf(texts, offset),
    token_logprobs: texts.map((_, index) => numberOrNull(listAt(value, 'token_logprobs')[index])),
    tokens: texts,
    top_logprobs: Array.isArray(value['top_logprobs']) ? texts.map((_, index) => topOf(listAt(value, 'top_logprobs')[index])) : null,
  };
}

function chatShape(entries: readonly Readonly<Record<string, unknown>>[], offset: number): CompletionLogprobs {
  const texts = entries.map(tokenOf);
  return {
    text_offset: offsetsOf(texts, offset),
    token_logprobs: entries.map((entry) => numberOrNull(entry['logprob'])),
    tokens: texts,
    top_logprobs: entries.map((entry) => {
      const tops = (Array.isArray(entry['top_logprobs']) ? entry['top_logprobs'] : []).filter(isRecord);
      return Object.fromEntries(tops.flatMap((top) => (typeof top['logprob'] === 'number' ? [[tokenOf(top), top['logprob']]] : [])));
    }),
  };
}

function offsetsOf(texts: readonly string[], offset: number): number[] {
  let position = offset;
  return texts.map((text) => {
    const here = position;
    position += text.length;
    return here;
  });
}

function listAt(value: Readonly<Record<string, unknown>>, key: string): readonly unknown[] {
  return Array.isArray(value[key]) ? value[key] as readonly unknown[] : [];
}

function topOf(value: unknown): Record<string, number> | null {
  if (!isRecord(value)) return null;
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

function tokenOf(entry: Readonly<Record<string, unknown>>): string {
  return typeof entry['token'] === 'string' ? entry['token'] : '';
}

/** Minus infinity is no number of JSON; engines write null or a very low one. */
function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
