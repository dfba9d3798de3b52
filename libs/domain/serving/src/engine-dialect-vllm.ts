import type { EngineKind } from '@penstock/contract-events';
import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { busyFault, contextLengthFault, failedFault, readErrorParts, rejectedFault, type EngineErrorParts } from './engine-fault.js';
import { onlyChoiceOf, readOpenAiUsage, type UsageReading } from './engine-usage.js';

const KEEP_ALIVE_MS = 5_000;

/** vLLM 0.32 and what copies its surface. */
export function vllmDialect(kind: EngineKind): EngineDialect {
  return {
    kind,
    fieldsToSet: ({ stream, cacheSalt }) => ({
      ...(stream ? { stream_options: { include_usage: true, continuous_usage_stats: true } } : {}),
      ...(cacheSalt === undefined ? {} : { cache_salt: cacheSalt }),
    }),
    fieldsToStrip: [
      'priority', 'cache_salt', 'request_id', 'session_id', 'kv_transfer_params', 'ec_transfer_params', 'vllm_xargs', 'chat_template', 'chat_template_kwargs',
      'mm_processor_kwargs', 'media_io_kwargs', 'return_token_ids', 'return_tokens_as_token_ids', 'prompt_logprobs', 'use_beam_search', 'best_of',
      'ignore_eos', 'min_tokens', 'stream_interval', 'echo', 'add_generation_prompt', 'continue_final_message', 'truncate_prompt_tokens', 'documents', 'data_parallel_rank', 'add_special_tokens', 'prompt_embeds',
    ],
    readUsage,
    reportsUsageUnstreamed: () => true,
    echoesPrompts: kind === 'vllm',
    completionLogprobs: (count) => ({ logprobs: count }),
    readFault,
    keepAliveMs: KEEP_ALIVE_MS,
    requestsPerConnectionMax: null,
  };
}

/** Continuous usage counts the choice of its chunk; the last chunk, which has no choices, and a whole answer count all of them. */
function readUsage(body: unknown): UsageReading | undefined {
  const usage = readOpenAiUsage(body);
  if (usage === undefined) return undefined;
  const { object } = body as { object?: unknown };
  // A completion's chunk looks like a whole answer; with one choice both say the same.
  const isChunk = object === 'chat.completion.chunk' || object === 'text_completion' || hasDelta(body);
  const choice = isChunk ? onlyChoiceOf(body) : undefined;
  return { ...usage, scope: choice === undefined ? 'request' : 'choice', choice: choice ?? 0 };
}

function hasDelta(body: unknown): boolean {
  const choices = (body as { choices?: unknown }).choices;
  return Array.isArray(choices) && choices.some((choice) => typeof choice === 'object' && choice !== null && 'delta' in choice);
}

function readFault(status: number, body: unknown): EngineFault | undefined {
  const parts = readErrorParts(body);
  if (parts === undefined) return status >= 400 ? faultOfStatus(status, { message: '', type: '', param: null, code: undefined }) : undefined;
  return faultOfStatus(status >= 400 ? status : parts.code ?? 500, parts);
}

const CONTEXT_PATTERN = /maximum context length is (\d+) tokens(?:.*?contains at least (\d+))?/s;

function faultOfStatus(status: number, parts: EngineErrorParts): EngineFault {
  const context = CONTEXT_PATTERN.exec(parts.message);
  if (context !== null && status < 500) return contextLengthFault(Number(context[1]), context[2] === undefined ? undefined : Number(context[2]));
  if (status === 503 || status === 429) return busyFault;
  // The engine knows the model by a name that is ours, and its routes are ours to choose: a 401, 404 or 405 is our fault, not the caller's.
  if (status === 401 || status === 404 || status === 405) return failedFault;
  if (status >= 400 && status < 500) return rejectedFault(parts);
  return failedFault;
}
