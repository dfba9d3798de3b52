import { z } from 'zod';
import { serviceTier } from './service-tier.js';

/** OpenAI clients send `null` for "not set" almost everywhere. */
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();

/** A part of a message; kinds that an engine does not know are its to refuse. */
const contentPart = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(contentPart).max(10_000)]);

const toolCall = z.looseObject({ id: z.string(), type: z.string() });

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal('system'), content }),
  z.looseObject({ role: z.literal('developer'), content }),
  z.looseObject({ role: z.literal('user'), content }),
  z.looseObject({ role: z.literal('assistant'), content: optional(content), tool_calls: optional(z.array(toolCall)) }),
  z.looseObject({ role: z.literal('tool'), content, tool_call_id: z.string() }),
  z.looseObject({ role: z.literal('function'), content: optional(content), name: z.string() }),
]);

/** As OpenAI's API has it: at most 16 pairs, a key of 64 characters and a value of 512. */
export const METADATA_PAIRS_MAX = 16;
export const metadata = z.record(z.string().max(64, 'its name is longer than 64 characters'), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= METADATA_PAIRS_MAX, `at most ${METADATA_PAIRS_MAX} pairs`);

/** A whole number of up to 64 bits: most of them are no exact numbers in JavaScript, so what goes on are the digits as they came. */
export const seed = z.number().refine(Number.isInteger, 'a whole number');

/** More choices than this multiply the cost of one request beyond what a limit on tokens bounds. */
export const CHOICES_MAX = 8;

/** Body of `POST /v1/chat/completions`: the fields the platform acts on; every other field goes to the engine as it came. */
export const chatCompletionRequest = z.looseObject({
  model: z.string().min(1).max(200),
  messages: z.array(message).min(1).max(10_000),
  stream: optional(z.boolean()),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean()) })),
  max_tokens: optional(z.int().min(1).max(10_000_000)),
  max_completion_tokens: optional(z.int().min(1).max(10_000_000)),
  n: optional(z.int().min(1).max(CHOICES_MAX)),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  stop: optional(z.union([z.string(), z.array(z.string()).min(1).max(4)])),
  seed: optional(seed),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int().min(0).max(20)),
  tools: optional(z.array(z.looseObject({ type: z.string() })).max(128)),
  functions: optional(z.array(z.looseObject({ name: z.string() })).min(1).max(128)),
  service_tier: optional(serviceTier),
  response_format: optional(z.looseObject({ type: z.enum(['text', 'json_object', 'json_schema']) })),
  user: optional(z.string().max(512)),
  metadata: optional(metadata),
  safety_identifier: optional(z.string().max(64)),
});
export type ChatCompletionRequest = z.infer<typeof chatCompletionRequest>;

export const completionUsage = z.looseObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.int() }),
  completion_tokens_details: z.looseObject({ reasoning_tokens: z.int() }),
});

const finishReason = z.enum(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

export const chatCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.looseObject({
    index: z.int(),
    message: z.looseObject({ role: z.literal('assistant'), content: z.string().nullable(), refusal: z.string().nullable() }),
    logprobs: z.unknown(),
    finish_reason: finishReason,
  })),
  usage: completionUsage,
});

export const chatCompletionChunk = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion.chunk'),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.looseObject({
    index: z.int(),
    delta: z.looseObject({ role: z.literal('assistant').optional(), content: z.string().nullable().optional() }),
    finish_reason: finishReason.nullable(),
  })),
  usage: completionUsage.nullable().optional(),
});
