export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call';

const known: ReadonlySet<string> = new Set<FinishReason>(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

/** `ended` for a reason of OpenAI's API, `open` while there is none, `broken` for anything else an engine says (`error`, `abort`). */
export function readFinishReason(value: unknown): { readonly kind: 'ended'; readonly reason: FinishReason } | { readonly kind: 'open' } | { readonly kind: 'broken' } {
  if (value === null || value === undefined || value === '') return { kind: 'open' };
  return typeof value === 'string' && known.has(value) ? { kind: 'ended', reason: value as FinishReason } : { kind: 'broken' };
}
