import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { busyFault, contextLengthFault, failedFault, loadingFault, readErrorParts, rejectedFault } from './engine-fault.js';
import { onlyChoiceOf, readOpenAiUsage, type UsageReading } from './engine-usage.js';
import { countAt, recordAt } from './json-fields.js';

const KEEP_ALIVE_MS = 5_000;
const REQUESTS_PER_CONNECTION_MAX = 100;

/** llama.cpp's own server, as `llama-server` or out of the wheel `xllamacpp`. */
export const llamaCppDialect: EngineDialect = {
  kind: 'llama.cpp',
  // Only `timings_per_token` tells what was produced so far when a client leaves in the middle.
  fieldsToSet: ({ stream }): Readonly<Record<string, true | { include_usage: true }>> => (stream ? { stream_options: { include_usage: true }, timings_per_token: true } : {}),
  fieldsToStrip: [
    'id_slot', 'cache_prompt', 'timings_per_token', 'n_predict', 'n_keep', 'n_discard', 'n_cache_reuse', 'ignore_eos', 'grammar', 'grammar_lazy', 'grammar_triggers',
    'json_schema', 'lora', 'speculative.n_max', 'speculative.n_min', 'speculative.p_min', 'samplers', 't_max_predict_ms', 'return_tokens', 'verbose',
    'chat_template', 'chat_template_kwargs', 'reasoning_format', 'thinking_forced_open', 'add_generation_prompt', 'parse_tool_calls', 'response_fields',
    'post_sampling_probs', 'n_probs', 'min_keep', 'prompt', 'priority', 'cache_salt', 'request_id', 'kv_transfer_params', 'ec_transfer_params', 'vllm_xargs',
    'mm_processor_kwargs', 'media_io_kwargs', 'best_of', 'use_beam_search', 'min_tokens',
  ],
  readUsage,
  // With several choices an unstreamed answer reports the tokens of one of them.
  reportsUsageUnstreamed: (choices) => choices <= 1,
  echoesPrompts: false,
  completionLogprobs: (count) => ({ logprobs: count, n_probs: Math.max(1, count) }),
  readFault,
  keepAliveMs: KEEP_ALIVE_MS,
  requestsPerConnectionMax: REQUESTS_PER_CONNECTION_MAX,
};

/**
 * A content chunk has `timings` of its own choice; once a choice is done a chunk without choices has the `usage` of that
 * choice, whatever the others do; an unstreamed answer has `usage`.
 */
function readUsage(body: unknown): UsageReading | undefined {
  const usage = readOpenAiUsage(body);
  if (usage !== undefined) {
    const choices = (body as { choices?: unknown }).choices;
    const isUsageChunk = Array.isArray(choices) && choices.length === 0;
    // A completion reports the tokens of a choice with its last chunk.
    const own = (body as { object?: unknown }).object === 'text_completion' ? onlyChoiceOf(body) : undefined;
    return own === undefined ? { ...usage, scope: isUsageChunk ? 'finished-choice' : 'request', choice: 0 } : { ...usage, scope: 'choice', choice: own };
  }
  const timings = recordAt(body, 'timings');
  const [fresh, cached, produced] = [countAt(timings, 'prompt_n'), countAt(timings, 'cache_n') ?? 0, countAt(timings, 'predicted_n')];
  const choice = onlyChoiceOf(body);
  if (fresh === undefined || produced === undefined || choice === undefined) return undefined;
  return { scope: 'choice', choice, promptTokens: fresh + cached, cachedTokens: cached, completionTokens: produced, reasoningTokens: null };
}

/** Longer than one pass of the engine: it says 500 to what is the caller's to shorten. */
const TOO_LARGE_PATTERN = /input \((\d+) tokens\) is too large to process/;
/** What an embedding model says to a chat and a chat model to an embedding, the start options that would help included. */
const LACKS_PATTERN = /does not support (?:logits computation|embeddings|reranking|completions|chat)/i;
/** It says 500 to what a model has no eyes or ears for, and to what it cannot read in a request: neither is a failure of the engine. */
const SENSES_PATTERN = /\b(image|audio|video) input is not supported/i;
const UNREADABLE_PATTERN = /^Failed to parse (?:messages|tools|tool_calls)\b|^\[json\.exception\./i;
/** A token id that the vocabulary does not have. */
const TOKEN_RANGE_PATTERN = /vector::_M_range_check/;
const lacksFault: EngineFault = { code: 'unsupported_operation', message: 'This model does not do what was asked of it. Choose a model that does.', param: 'model', retryElsewhere: false };

function readFault(status: number, body: unknown): EngineFault | undefined {
  const parts = readErrorParts(body);
  if (parts === undefined) return status >= 400 ? failedFault : undefined;
  if (parts.type === 'exceed_context_size_error') {
    const error = recordAt(body, 'error');
    return contextLengthFault(countAt(error, 'n_ctx'), countAt(error, 'n_prompt_tokens'));
  }
  const tooLarge = TOO_LARGE_PATTERN.exec(parts.message);
  if (tooLarge !== null) return contextLengthFault(undefined, Number(tooLarge[1]));
  if (LACKS_PATTERN.test(parts.message)) return lacksFault;
  const sense = SENSES_PATTERN.exec(parts.message)?.[1]?.toLowerCase();
  if (sense !== undefined) return { code: 'unsupported_value', message: `This model takes no ${sense} input. Send text alone, or choose a model that does.`, param: 'messages', retryElsewhere: false };
  if (TOKEN_RANGE_PATTERN.test(parts.message)) return rejectedFault({ ...parts, message: 'A token id is none of this model\'s vocabulary.' });
  // What follows repeats the request, in the engine's notation.
  if (UNREADABLE_PATTERN.test(parts.message)) return rejectedFault({ ...parts, message: parts.message.split(/[{;\n]/)[0]?.trim().replace(/:$/, '.') ?? '' });
  const meant = status >= 400 ? status : parts.code ?? 500;
  if (meant === 503) return parts.type === 'unavailable_error' && /loading/i.test(parts.message) ? loadingFault : busyFault;
  if (meant === 401 || meant === 404 || meant === 405) return failedFault;
  if (meant >= 400 && meant < 500) return rejectedFault(parts);
  // 501: the model or its start options cannot do what was asked, and another replica of the endpoint cannot either.
  if (meant === 501) return rejectedFault(parts);
  return failedFault;
}
