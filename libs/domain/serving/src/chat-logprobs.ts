import { isRecord } from './json-fields.js';

export interface TokenLogprob {
  readonly token: string;
  /** Natural logarithm. */
  readonly logprob: number;
  /** The token's text in UTF-8; null where an engine does not say. */
  readonly bytes: readonly number[] | null;
}

export interface ChatLogprobs {
  readonly content: readonly (TokenLogprob & { readonly top_logprobs: readonly TokenLogprob[] })[] | null;
  readonly refusal: readonly (TokenLogprob & { readonly top_logprobs: readonly TokenLogprob[] })[] | null;
}

/** As OpenAI has them: what engines say beside that, such as the ids of tokens, is theirs. Null where an engine has none. */
export function readChatLogprobs(value: unknown): ChatLogprobs | null {
  return isRecord(value) ? { content: entriesOf(value['content']), refusal: entriesOf(value['refusal']) } : null;
}

function entriesOf(list: unknown): ChatLogprobs['content'] {
  if (!Array.isArray(list)) return null;
  return (list as unknown[]).filter(isRecord).map((entry) => ({
    ...tokenOf(entry), top_logprobs: Array.isArray(entry['top_logprobs']) ? (entry['top_logprobs'] as unknown[]).filter(isRecord).map(tokenOf) : [],
  }));
}

/** OpenAI's stand-in for a token that is as good as impossible: minus infinity is no number of JSON. */
const IMPOSSIBLE = -9_999;

function tokenOf({ token, logprob, bytes }: Readonly<Record<string, unknown>>): TokenLogprob {
  return { token: typeof token === 'string' ? token : '', logprob: typeof logprob === 'number' ? logprob : IMPOSSIBLE, bytes: Array.isArray(bytes) ? bytes as readonly number[] : null };
}
