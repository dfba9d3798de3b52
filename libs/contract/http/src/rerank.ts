import { z } from 'zod';
import { embeddingUsage } from './embeddings.js';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().optional();

/** Documents that one request may rank or score. */
export const DOCUMENTS_MAX = 1_000;

const text = z.string().min(1);
const texts = z.union([text, z.array(text).min(1).max(DOCUMENTS_MAX)]);

/** Body of `POST /v1/rerank`, in the shape of Jina and Cohere. */
export const rerankRequest = z.looseObject({
  model: z.string().min(1).max(200),
  query: text,
  documents: z.array(z.union([text, z.looseObject({ text })])).min(1).max(DOCUMENTS_MAX),
  /** 0 or nothing: all of them. */
  top_n: optional(z.int().min(0).max(DOCUMENTS_MAX)),
  return_documents: optional(z.boolean()),
});
export type RerankRequest = z.infer<typeof rerankRequest>;

/** Best first. */
export const rerankAnswer = z.object({
  id: z.string(),
  model: z.string(),
  usage: embeddingUsage,
  results: z.array(z.object({ index: z.int(), document: z.object({ text: z.string() }).optional(), relevance_score: z.number() })),
});

/** Body of `POST /v1/score`: one of the three pairs of names. One text on the left goes with each on the right. */
export const scoreRequest = z.looseObject({
  model: z.string().min(1).max(200),
  text_1: optional(texts),
  text_2: optional(texts),
  queries: optional(texts),
  documents: optional(texts),
  data_1: optional(texts),
  data_2: optional(texts),
});
export type ScoreRequest = z.infer<typeof scoreRequest>;

export const scoreAnswer = z.object({
  id: z.string(),
  object: z.literal('list'),
  created: z.int(),
  model: z.string(),
  data: z.array(z.object({ index: z.int(), object: z.literal('score'), score: z.number() })),
  usage: embeddingUsage,
});

/** Body of `POST /v1/classify`. */
export const classifyRequest = z.looseObject({ model: z.string().min(1).max(200), input: texts });
export type ClassifyRequest = z.infer<typeof classifyRequest>;

export const classifyAnswer = z.object({
  id: z.string(),
  object: z.literal('list'),
  created: z.int(),
  model: z.string(),
  data: z.array(z.object({ index: z.int(), label: z.string().nullable(), probs: z.array(z.number()), num_classes: z.int() })),
  usage: embeddingUsage,
});
