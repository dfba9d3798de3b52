import { z } from 'zod';
import type { SimOptions } from './options.js';
import { badRequest, errorBody, invalidShape, SimError } from './sim-error.js';
import { tokenize } from './tokenizer.js';

export interface SimRequest {
  readonly endpoint: 'chat' | 'completions';
  readonly promptText: string;
  readonly promptTokens: number;
  readonly choices: number;
  readonly tokensMax: number;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly continuousUsage: boolean;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  readonly seed: number;
  readonly ignoreEnd: boolean;
  /** The model that was asked for, where it is an adapter. */
  readonly adapter: string | undefined;
  /** Separates the prefix cache from that of other salts. */
  readonly cacheSalt: string | undefined;
  /** `request_id` of the body. */
  readonly requestId: string | undefined;
}

const TOP_LOGPROBS_MAX = 20;
const COMPLETIONS_TOKENS_DEFAULT = 16;

const nullable = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

const shared = {
  model: nullable(z.string()),
  stream: nullable(z.boolean()),
  stream_options: nullable(z.looseObject({ include_usage: nullable(z.boolean()), continuous_usage_stats: nullable(z.boolean()) })),
  max_tokens: nullable(z.int()),
  n: nullable(z.int().min(1).max(128)),
  stop: nullable(z.union([z.string(), z.array(z.string()).max(16)])),
  temperature: nullable(z.number()),
  seed: nullable(z.number()),
  ignore_eos: nullable(z.boolean()),
  cache_salt: nullable(z.string()),
  request_id: nullable(z.string()),
};

const contentPart = z.looseObject({ type: z.string(), text: z.string().optional() });
const chatBody = z.looseObject({
  ...shared,
  messages: z.array(z.looseObject({ role: z.string(), content: nullable(z.union([z.string(), z.array(contentPart)])) })),
  max_completion_tokens: nullable(z.int()),
  logprobs: nullable(z.boolean()),
  top_logprobs: nullable(z.int()),
});
const completionsBody = z.looseObject({ ...shared, prompt: z.union([z.string(), z.array(z.string()).min(1).max(1)]), logprobs: nullable(z.int()) });

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const position = /position (\d+)/.exec((error as Error).message)?.[1] ?? '0';
    throw invalidShape(`1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.${position}', 'msg': 'JSON decode error'}`, `body.${position}`);
  }
}

function parseBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = ['body', ...(issue?.path ?? [])].join('.');
  throw invalidShape(`1 validation error:\n  {'type': '${issue?.code ?? 'invalid'}', 'loc': '${path}', 'msg': '${issue?.message ?? ''}'}`, path);
}

/** Throws {@link SimError} with vLLM's words. */
export function readChatRequest(body: unknown, options: SimOptions): SimRequest {
  const parsed = parseBody(chatBody, body);
  if (parsed.messages.length === 0) throw badRequest('No messages were given.');
  if ((parsed.top_logprobs ?? 0) > TOP_LOGPROBS_MAX) {
    throw badRequest(`Requested sample logprobs of ${parsed.top_logprobs}, which is greater than max allowed: ${TOP_LOGPROBS_MAX}`);
  }
  return {
    ...readShared(parsed, renderChat(parsed.messages), parsed.max_completion_tokens ?? parsed.max_tokens ?? undefined, undefined, options),
    endpoint: 'chat',
    logprobs: parsed.logprobs ?? false,
    topLogprobs: parsed.top_logprobs ?? 0,
  };
}

export function readCompletionsRequest(body: unknown, options: SimOptions): SimRequest {
  const parsed = parseBody(completionsBody, body);
  const prompt = typeof parsed.prompt === 'string' ? parsed.prompt : (parsed.prompt[0] ?? '');
  return {
    ...readShared(parsed, prompt, parsed.max_tokens ?? undefined, COMPLETIONS_TOKENS_DEFAULT, options),
    endpoint: 'completions',
    logprobs: typeof parsed.logprobs === 'number',
    topLogprobs: parsed.logprobs ?? 0,
  };
}

type SharedBody = z.output<z.ZodObject<typeof shared>>;

function readShared(
  body: SharedBody, promptText: string, tokensAsked: number | undefined, tokensDefault: number | undefined, options: SimOptions,
): Omit<SimRequest, 'endpoint' | 'logprobs' | 'topLogprobs'> {
  const limit = options['max-model-len'];
  if (body.model !== null && body.model !== undefined && body.model !== options.model && !options['lora-modules'].includes(body.model)) {
    throw new SimError(404, errorBody(`The model \`${body.model}\` does not exist. Valid aliases: ${options.model}.`, 'NotFoundError', 'model', 404));
  }
  if (body.temperature !== null && body.temperature !== undefined && (body.temperature < 0 || body.temperature > 2)) {
    throw badRequest(body.temperature < 0 ? `temperature must be non-negative, got ${body.temperature}.` : `temperature must be in [0, 2], got ${body.temperature}.`, 'temperature');
  }
  if (body.stream_options && body.stream !== true) throw badRequest('Stream options can only be defined when `stream=True`.');
  if (body.cache_salt === '') throw badRequest("Parameter 'cache_salt' must be a non-empty string if provided.");
  if (tokensAsked !== undefined && tokensAsked < 1) throw badRequest(`max_tokens must be at least 1, got ${tokensAsked}.`, 'max_tokens');
  if (tokensAsked !== undefined && tokensAsked > limit) throw badRequest(`max_tokens=${tokensAsked} cannot be greater than max_model_len=${limit}. Please request fewer output tokens.`, 'max_tokens');
  const promptTokens = tokenize(promptText).length;
  if (promptTokens >= limit) {
    throw badRequest(
      `This model's maximum context length is ${limit} tokens. However, your prompt contains at least ${limit + 1} input tokens, which exceeds it. `
      + `Please reduce the length of the input. (parameter=input_tokens, value=${limit + 1})`,
      'input_tokens',
    );
  }
  return {
    promptText, promptTokens,
    choices: body.n ?? 1,
    tokensMax: Math.min(tokensAsked ?? tokensDefault ?? limit, limit - promptTokens),
    stop: typeof body.stop === 'string' ? [body.stop] : (body.stop ?? []),
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    continuousUsage: (body.stream_options?.include_usage ?? false) && (body.stream_options?.continuous_usage_stats ?? false),
    seed: Math.trunc(body.seed ?? 0),
    ignoreEnd: body.ignore_eos ?? false,
    adapter: options['lora-modules'].find((name) => name === body.model),
    cacheSalt: body.cache_salt ?? undefined,
    requestId: body.request_id ?? undefined,
  };
}

type ChatMessage = z.output<typeof chatBody>['messages'][number];

function renderChat(messages: readonly ChatMessage[]): string {
  const lines = messages.map((message) => `<|${message.role}|>${contentText(message.content)}<|end|>`);
  return `${lines.join('')}<|assistant|>`;
}

function contentText(content: ChatMessage['content']): string {
  if (content === null || content === undefined) return '';
  return typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
}

const tokenizeBody = z.union([z.looseObject({ prompt: z.string() }), z.looseObject({ messages: chatBody.shape.messages })]);

export function readTokenizeRequest(body: unknown): readonly number[] {
  const parsed = parseBody(tokenizeBody, body);
  return tokenize('prompt' in parsed ? (parsed.prompt as string) : renderChat(parsed.messages as ChatMessage[]));
}
