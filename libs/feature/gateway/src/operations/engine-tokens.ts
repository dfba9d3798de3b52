import { brokenAnswerFault, readOptionalReply, type EngineFault } from '@penstock/domain-serving';
import type { EngineSession } from './engine-session.js';

/** A text, or messages that go through the model's chat template with the tools that they may call. */
export interface TokensAsk {
  readonly prompt?: string | undefined;
  readonly messages?: readonly unknown[] | undefined;
  readonly tools?: readonly unknown[] | undefined;
  /** Whether the model's own first and last tokens are added; undefined for the engine's default. */
  readonly special?: boolean | undefined;
}

type Stopped = { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'aborted' };
export type EngineTokens = { readonly kind: 'tokens'; readonly tokens: readonly number[]; readonly texts: readonly unknown[] | null } | Stopped;
export type EngineBody = { readonly kind: 'body'; readonly body: Readonly<Record<string, unknown>> } | Stopped;

/** Asks an engine for the token ids of what a model would read. */
export async function tokensOf(session: EngineSession, { prompt, messages, tools, special }: TokensAsk): Promise<EngineTokens> {
  const isLlamaCpp = session.dialect.kind === 'llama.cpp';
  const spoken = { messages, ...(tools === undefined ? {} : { tools }) };
  let content = prompt;
  if (isLlamaCpp && content === undefined) {
    const templated = await askEngine(session, '/apply-template', spoken, 'take messages');
    if (templated.kind !== 'body') return templated;
    content = String(templated.body['prompt']);
  }
  const asked = isLlamaCpp
    ? await askEngine(session, '/tokenize', { content, add_special: special ?? prompt !== undefined, parse_special: true }, 'tokenize')
    : await askEngine(session, '/tokenize', { model: session.servedModel, ...(content === undefined ? spoken : { prompt: content }), ...(special === undefined ? {} : { add_special_tokens: special }) }, 'tokenize');
  if (asked.kind !== 'body') return asked;
  const { tokens, token_strs: texts } = asked.body;
  if (!Array.isArray(tokens) || !tokens.every((token): token is number => Number.isInteger(token))) return { kind: 'failed', fault: brokenAnswerFault };
  return { kind: 'tokens', tokens, texts: Array.isArray(texts) ? texts : null };
}

/** Sends a body that only some engines take; `what` says what a model without that does not do. */
export async function askEngine(session: EngineSession, path: string, body: object, what: string): Promise<EngineBody> {
  const reply = await session.whole(path, JSON.stringify(body));
  if (reply.kind !== 'reply') return reply;
  const read = readOptionalReply(reply.status, reply.text, session.dialect, what);
  if (read.kind === 'fault') return { kind: 'failed', fault: read.fault };
  return typeof read.body === 'object' && read.body !== null ? { kind: 'body', body: read.body as Readonly<Record<string, unknown>> } : { kind: 'failed', fault: brokenAnswerFault };
}
