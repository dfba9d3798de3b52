import { z } from 'zod';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();
const token = z.int().min(0).max(10_000_000);

/** Inputs of one request, as OpenAI's API limits them. */
export const EMBEDDING_INPUTS_MAX = 2_048;
/** Token ids of one input, as OpenAI's API limits them. */
const EMBEDDING_TOKENS_MAX = 2_048;

/** Body of `POST /v1/embeddings`. Token ids go to the model as they are: a caller that sends them adds the model's special tokens. */
export const embeddingRequest = z.looseObject({
  model: z.string().min(1).max(200),
  input: z.union([
    z.string().min(1),
    z.array(z.string().min(1)).min(1).max(EMBEDDING_INPUTS_MAX),
    z.array(token).min(1).max(EMBEDDING_TOKENS_MAX),
    z.array(z.array(token).min(1).max(EMBEDDING_TOKENS_MAX)).min(1).max(EMBEDDING_INPUTS_MAX),
  ]),
  encoding_format: optional(z.enum(['float', 'base64'])),
  dimensions: optional(z.int().min(1).max(65_536)),
  user: optional(z.string().max(512)),
});
export type EmbeddingRequest = z.infer<typeof embeddingRequest>;

export const embeddingUsage = z.object({ prompt_tokens: z.int(), total_tokens: z.int() });

export const embeddingList = z.looseObject({
  object: z.literal('list'),
  data: z.array(z.looseObject({
    object: z.literal('embedding'),
    index: z.int(),
    /** Numbers, or little-endian 32-bit floats in base64. */
    embedding: z.union([z.array(z.number()), z.string()]),
  })),
  model: z.string(),
  usage: embeddingUsage,
});
