import { z } from 'zod';
import { CHOICES_MAX, completionUsage, seed } from './chat.js';
import { serviceTier } from './service-tier.js';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();
const token = z.int().min(0).max(10_000_000);

/** Prompts that one request may hold; each is worked on like a request of its own. */
export const PROMPTS_MAX = 128;
/** Longer prompts than this outgrow every context. In tokens. */
const PROMPT_TOKENS_MAX = 1_000_000;

/** One text, several texts, one list of token ids, or several of them. */
export const promptInput = z.union([
  z.string(),
  z.array(z.string()).min(1).max(PROMPTS_MAX),
  z.array(token).min(1).max(PROMPT_TOKENS_MAX),
  z.array(z.array(token).min(1).max(PROMPT_TOKENS_MAX)).min(1).max(PROMPTS_MAX),
]);
export type PromptInput = z.infer<typeof promptInput>;

/** Body of `POST /v1/completions`: the fields the platform acts on; every other field goes to the engine as it came. */
export const completionRequest = z.looseObject({
  model: z.string().min(1).max(200),
  prompt: promptInput,
  stream: optional(z.boolean()),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean()) })),
  max_tokens: optional(z.int().min(0).max(10_000_000)),
  n: optional(z.int().min(1).max(CHOICES_MAX)),
  best_of: optional(z.int().min(0).max(20)),
  echo: optional(z.boolean()),
  logprobs: optional(z.int().min(0).max(5)),
  suffix: optional(z.string()),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  stop: optional(z.union([z.string(), z.array(z.string()).min(1).max(4)])),
  seed: optional(seed),
  service_tier: optional(serviceTier),
  user: optional(z.string().max(512)),
});
export type CompletionRequest = z.infer<typeof completionRequest>;

/** `token_logprobs` and `top_logprobs` hold null where nothing came before a token. */
export const completionLogprobs = z.looseObject({
  text_offset: z.array(z.int()),
  token_logprobs: z.array(z.number().nullable()),
  tokens: z.array(z.string()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullable(),
});
export type CompletionLogprobs = z.infer<typeof completionLogprobs>;

const finishReason = z.enum(['stop', 'length', 'content_filter']);

/** A whole answer, and one chunk of a stream: a chunk's `finish_reason` is null until its choice ends. */
export const textCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('text_completion'),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.looseObject({ index: z.int(), text: z.string(), logprobs: completionLogprobs.nullable(), finish_reason: finishReason.nullable() })),
  usage: completionUsage.nullable().optional(),
});
