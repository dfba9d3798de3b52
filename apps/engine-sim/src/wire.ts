import type { Piece } from './sequence.js';
import type { SimRequest } from './sim-request.js';

/** What every body of one answer has in common. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

export const SIM_FINGERPRINT = 'vllm-0.32.0-51a0bead';
/** Reported by `/version`: the version of vLLM whose surface this is. */
export const SIM_VERSION = '0.32.0';
const SIM_LOGPROB = -0.105_360_5;

export interface SimUsage {
  readonly prompt_tokens: number;
  readonly total_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details: PromptTokensDetails | null;
}

/** vLLM fills in different keys for each kind of answer. */
export interface PromptTokensDetails {
  readonly cached_tokens: number;
  readonly created_cache_tokens?: number | null;
  readonly multimodal_tokens?: null;
}

export function usageOf(promptTokens: number, completionTokens: number, details: PromptTokensDetails | null): SimUsage {
  return { prompt_tokens: promptTokens, total_tokens: promptTokens + completionTokens, completion_tokens: completionTokens, prompt_tokens_details: details };
}

/** As with `--enable-prompt-tokens-details`. */
export function detailsOf(request: SimRequest, cachedTokens: number): PromptTokensDetails {
  if (request.stream) return request.endpoint === 'chat' ? { cached_tokens: cachedTokens, created_cache_tokens: 0 } : { cached_tokens: cachedTokens };
  return { cached_tokens: cachedTokens, created_cache_tokens: request.endpoint === 'chat' ? 0 : null, multimodal_tokens: null };
}

/** The first chunk of a choice of a streamed chat: it comes with the first token, not before. */
export function roleChunk(head: AnswerHead, choice: number, usage: SimUsage | undefined): unknown {
  return {
    ...chunkHead(head, 'chat.completion.chunk'),
    choices: [{ index: choice, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
    prompt_token_ids: null, prompt_text: null,
    ...(usage === undefined ? {} : { usage }),
  };
}

export function pieceChunk(head: AnswerHead, request: SimRequest, piece: Piece, usage: SimUsage | undefined): unknown {
  const last = piece.finish === null ? { finish_reason: null } : { finish_reason: piece.finish, stop_reason: piece.stopReason };
  const choice = request.endpoint === 'chat'
    ? { index: piece.choice, delta: { content: piece.text }, logprobs: chatLogprobs(request, piece.tokens), ...last, token_ids: null }
    : { index: piece.choice, text: piece.text, logprobs: completionsLogprobs(request, piece.tokens), ...last };
  return {
    ...chunkHead(head, request.endpoint === 'chat' ? 'chat.completion.chunk' : 'text_completion'),
    choices: [choice],
    ...(piece.finish === null ? {} : { system_fingerprint: SIM_FINGERPRINT }),
    ...(usage === undefined ? {} : { usage }),
  };
}

export function usageChunk(head: AnswerHead, request: SimRequest, usage: SimUsage): unknown {
  return { ...chunkHead(head, request.endpoint === 'chat' ? 'chat.completion.chunk' : 'text_completion'), choices: [], system_fingerprint: SIM_FINGERPRINT, usage };
}

function chunkHead(head: AnswerHead, object: string): Record<string, unknown> {
  return { id: head.id, object, created: head.created, model: head.model };
}

/** One finished choice. */
export interface Answer {
  readonly choice: number;
  readonly text: string;
  readonly tokens: readonly string[];
  readonly finish: 'stop' | 'length';
  readonly stopReason: string | null;
}

export function wholeAnswer(head: AnswerHead, request: SimRequest, answers: readonly Answer[], usage: SimUsage): unknown {
  const isChat = request.endpoint === 'chat';
  const choices = answers.map((answer) => {
    const end = { finish_reason: answer.finish, stop_reason: answer.stopReason, token_ids: null };
    if (!isChat) return { index: answer.choice, text: answer.text, logprobs: completionsLogprobs(request, answer.tokens), ...end, prompt_logprobs: null, prompt_token_ids: null };
    const message = { role: 'assistant', content: answer.text, refusal: null, annotations: null, audio: null, function_call: null, reasoning: null };
    return { index: answer.choice, message, logprobs: chatLogprobs(request, answer.tokens), ...end, routed_experts: null };
  });
  return {
    ...chunkHead(head, isChat ? 'chat.completion' : 'text_completion'),
    choices, service_tier: null, system_fingerprint: SIM_FINGERPRINT, usage,
    ...(isChat ? { prompt_logprobs: null, prompt_token_ids: null, prompt_text: null } : {}),
    kv_transfer_params: null, ec_transfer_params: null, metrics: null,
  };
}

function chatLogprobs(request: SimRequest, tokens: readonly string[]): unknown {
  if (!request.logprobs) return null;
  const entry = (token: string) => ({ token, logprob: SIM_LOGPROB, bytes: [...Buffer.from(token)] });
  return { content: tokens.map((token) => ({ ...entry(token), top_logprobs: request.topLogprobs > 0 ? [entry(token)] : [] })) };
}

function completionsLogprobs(request: SimRequest, tokens: readonly string[]): unknown {
  if (!request.logprobs) return null;
  let offset = 0;
  const offsets = tokens.map((token) => {
    const here = offset;
    offset += token.length;
    return here;
  });
  return { text_offset: offsets, token_logprobs: tokens.map(() => SIM_LOGPROB), tokens, top_logprobs: tokens.map((token) => ({ [token]: SIM_LOGPROB })) };
}

/** The model and its adapters, which name their parent and no length of their own. */
export function modelList(model: string, adapters: readonly string[], created: number, modelTokensMax: number): unknown {
  const permission = {
    id: 'modelperm-0000000000000000', object: 'model_permission', created, allow_create_engine: false, allow_sampling: true, allow_logprobs: true,
    allow_search_indices: false, allow_view: true, allow_fine_tuning: false, organization: '*', group: null, is_blocking: false,
  };
  const entry = (id: string, parent: string | null) => ({ id, object: 'model', created, owned_by: 'vllm', root: id, parent, max_model_len: parent === null ? modelTokensMax : null, permission: [permission] });
  return { object: 'list', data: [entry(model, null), ...adapters.map((adapter) => entry(adapter, model))] };
}
