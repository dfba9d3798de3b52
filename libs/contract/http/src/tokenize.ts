import { z } from 'zod';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();
/** Token ids of one request. */
const TOKENS_MAX = 1_000_000;

/** Body of `POST /v1/tokenize`: a `prompt`, or `messages` that are put through the model's chat template first. */
export const tokenizeRequest = z.looseObject({
  model: z.string().min(1).max(200),
  prompt: optional(z.string()),
  messages: optional(z.array(z.looseObject({ role: z.string() })).min(1).max(10_000)),
  /** Whether the model's own first and last tokens are added; by default for a prompt, and not for messages, whose template has them. */
  add_special_tokens: optional(z.boolean()),
});
export type TokenizeRequest = z.infer<typeof tokenizeRequest>;

export const tokenizeAnswer = z.object({ count: z.int(), max_model_len: z.int(), tokens: z.array(z.int()), token_strs: z.array(z.string()).nullable() });

export const detokenizeRequest = z.looseObject({ model: z.string().min(1).max(200), tokens: z.array(z.int().min(0).max(10_000_000)).min(1).max(TOKENS_MAX) });
export type DetokenizeRequest = z.infer<typeof detokenizeRequest>;

export const detokenizeAnswer = z.object({ prompt: z.string() });
