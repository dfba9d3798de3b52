import { batchObject, fileObject } from '@penstock/contract-commands';
import { z } from 'zod';
import { metadata } from './chat.js';

export const fileList = z.object({
  object: z.literal('list'),
  data: z.array(fileObject),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});
export const fileListQuery = z.object({
  purpose: z.string().max(100).optional(),
  after: z.string().max(128).optional(),
  order: z.enum(['asc', 'desc']).default('desc'),
  limit: z.coerce.number().int().min(1).max(10_000).default(10_000),
});
export const fileDeleted = z.object({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) });

export const createBatchRequest = z.object({
  input_file_id: z.string().min(1).max(128),
  endpoint: z.enum(['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses', '/v1/moderations']),
  completion_window: z.literal('24h'),
  metadata: metadata.nullable().optional(),
  /** How long the result files are kept after they were made. */
  output_expires_after: z.object({ anchor: z.literal('created_at'), seconds: z.int().min(3_600).max(2_592_000) }).nullable().optional(),
});
export const batchList = z.object({
  object: z.literal('list'),
  data: z.array(batchObject),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});
export const batchListQuery = z.object({
  after: z.string().max(128).optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
});

/** One line of a batch input file. */
export const batchInputLine = z.object({
  custom_id: z.string().min(1).max(512),
  method: z.literal('POST'),
  url: z.string(),
  body: z.looseObject({ model: z.string().min(1).max(200) }),
});
