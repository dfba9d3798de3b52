import { z } from 'zod';
import { metadata } from './chat.js';
import { serviceTier } from './service-tier.js';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();

const part = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(part).max(10_000)]);

/** One item of the input. Messages may leave `type` out. */
const inputItem = z.union([
  z.looseObject({ type: z.literal('message').optional(), role: z.enum(['user', 'assistant', 'system', 'developer']), content }),
  z.looseObject({ type: z.literal('function_call'), call_id: z.string().max(200), name: z.string().max(200), arguments: z.string() }),
  z.looseObject({ type: z.literal('function_call_output'), call_id: z.string().max(200), output: content }),
  z.looseObject({ type: z.literal('reasoning') }),
]);
export type ResponseInputItem = z.infer<typeof inputItem>;

const functionTool = z.looseObject({
  type: z.literal('function'), name: z.string().min(1).max(128), description: optional(z.string()), parameters: optional(z.looseObject({})), strict: optional(z.boolean()),
});

const textFormat = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({ type: z.literal('json_schema'), name: z.string().max(64), schema: z.looseObject({}), description: optional(z.string()), strict: optional(z.boolean()) }),
]);

/**
 * Body of `POST /v1/responses`: what can be said to an engine as a chat. An answer is kept only where `store` is true;
 * then `previous_response_id` may go on from it.
 */
export const responseRequest = z.looseObject({
  model: z.string().min(1).max(200),
  input: z.union([z.string().min(1), z.array(inputItem).min(1).max(10_000)]),
  instructions: optional(z.string()),
  stream: optional(z.boolean()),
  store: optional(z.boolean()),
  previous_response_id: optional(z.string().max(128)),
  max_output_tokens: optional(z.int().min(1).max(10_000_000)),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  top_logprobs: optional(z.int().min(0).max(20)),
  tools: optional(z.array(functionTool).max(128)),
  tool_choice: optional(z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.literal('function'), name: z.string() })])),
  parallel_tool_calls: optional(z.boolean()),
  text: optional(z.looseObject({ format: optional(textFormat), verbosity: optional(z.enum(['low', 'medium', 'high'])) })),
  reasoning: optional(z.looseObject({ effort: optional(z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])) })),
  service_tier: optional(serviceTier),
  truncation: optional(z.enum(['auto', 'disabled'])),
  metadata: optional(metadata),
  safety_identifier: optional(z.string().max(64)),
  background: optional(z.literal(false, 'only false is taken: answers are not made in the background')),
  user: optional(z.string().max(512)),
});
export type ResponseRequest = z.infer<typeof responseRequest>;

export const responseUsage = z.object({
  input_tokens: z.int(),
  input_tokens_details: z.object({ cached_tokens: z.int(), cache_write_tokens: z.int() }),
  output_tokens: z.int(),
  output_tokens_details: z.object({ reasoning_tokens: z.int() }),
  total_tokens: z.int(),
});

export const responseObject = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  model: z.string(),
  output: z.array(z.looseObject({ type: z.enum(['message', 'function_call', 'reasoning']), id: z.string(), status: z.enum(['in_progress', 'completed', 'incomplete']) })),
  usage: responseUsage.nullable(),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.object({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
});

export const responseItemList = z.object({ object: z.literal('list'), data: z.array(z.looseObject({ id: z.string() })), first_id: z.string().nullable(), last_id: z.string().nullable(), has_more: z.boolean() });
export const responseDeleted = z.object({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) });

export const responseItemsQuery = z.object({
  after: z.string().max(128).optional(),
  order: z.enum(['asc', 'desc']).default('desc'),
  limit: z.coerce.number().int().min(1).max(100).default(20),
});
export const responseInputTokens = z.object({ object: z.literal('response.input_tokens'), input_tokens: z.int() });
