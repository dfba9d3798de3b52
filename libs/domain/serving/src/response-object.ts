import type { ResponseRequest } from '@penstock/contract-http';
import type { RunningUsage } from './engine-usage.js';

export interface OutputText {
  readonly type: 'output_text';
  readonly text: string;
  readonly annotations: [];
  readonly logprobs: [];
}

export interface OutputRefusal {
  readonly type: 'refusal';
  readonly refusal: string;
}

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export type ResponseOutputItem =
  | { readonly type: 'message'; readonly id: string; readonly status: ItemStatus; readonly role: 'assistant'; readonly content: (OutputText | OutputRefusal)[] }
  | { readonly type: 'function_call'; readonly id: string; readonly status: ItemStatus; readonly call_id: string; readonly name: string; readonly arguments: string }
  | { readonly type: 'reasoning'; readonly id: string; readonly status: ItemStatus; readonly summary: []; readonly content: { readonly type: 'reasoning_text'; readonly text: string }[] };

export interface ResponseUsageBody {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number; readonly cache_write_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

/** What is the same in every snapshot of one response. */
export interface ResponseHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  /** The public name. */
  readonly model: string;
  readonly request: ResponseRequest;
}

export interface ResponseState {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed';
  readonly output: readonly ResponseOutputItem[];
  readonly usage: RunningUsage | null;
  readonly error: { readonly code: 'server_error'; readonly message: string } | null;
  readonly incompleteReason: 'max_output_tokens' | 'content_filter' | null;
  /** Unix seconds; null while it goes on. */
  readonly completedAt: number | null;
}

/** One snapshot in the form of OpenAI's API: every field that its clients read is there. */
export function responseBody({ id, created, model, request }: ResponseHead, state: ResponseState) {
  return {
    id,
    object: 'response' as const,
    access_programs: null,
    created_at: created,
    completed_at: state.completedAt,
    status: state.status,
    background: false,
    error: state.error,
    incomplete_details: state.incompleteReason === null ? null : { reason: state.incompleteReason },
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    model,
    output: [...state.output],
    output_text: state.output.flatMap((item) => (item.type === 'message' ? item.content : [])).map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
    store: request.store ?? false,
    temperature: request.temperature ?? 1,
    text: { format: request.text?.format ?? { type: 'text' as const }, ...(request.text?.verbosity === undefined || request.text.verbosity === null ? {} : { verbosity: request.text.verbosity }) },
    tool_choice: request.tool_choice ?? 'auto',
    tools: (request.tools ?? []).map(({ name, description, parameters, strict }) => ({ type: 'function' as const, name, description: description ?? null, parameters: parameters ?? null, strict: strict ?? true })),
    top_p: request.top_p ?? 1,
    truncation: request.truncation ?? 'disabled',
    usage: state.usage === null ? null : responseUsageOf(state.usage),
    user: request.user ?? null,
    metadata: request.metadata ?? {},
  };
}
export type ResponseBody = ReturnType<typeof responseBody>;

export function responseUsageOf(usage: RunningUsage): ResponseUsageBody {
  return {
    input_tokens: usage.promptTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens, cache_write_tokens: 0 },
    output_tokens: usage.completionTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.promptTokens + usage.completionTokens,
  };
}
