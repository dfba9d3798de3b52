import { usageBucket } from '@penstock/contract-commands';
import { z } from 'zod';

const list = z.union([z.string(), z.array(z.string())]).transform((value) => (Array.isArray(value) ? value : [value])).optional();

/** Query of `GET /v1/organization/usage/completions`, in OpenAI's names. Arrays come as `group_by=model` or `group_by[]=model`. */
export const usageQuery = z.object({
  start_time: z.coerce.number().int().nonnegative(),
  end_time: z.coerce.number().int().nonnegative().optional(),
  bucket_width: z.enum(['1m', '1h', '1d']).default('1d'),
  group_by: list,
  project_ids: list,
  api_key_ids: list,
  models: list,
  /** Our extension: usage of one request, by the id in its `x-request-id` header. */
  request_id: z.string().max(128).optional(),
  limit: z.coerce.number().int().min(1).max(1_440).optional(),
  page: z.string().max(200).optional(),
});

export const usagePage = z.object({
  object: z.literal('page'),
  data: z.array(usageBucket),
  has_more: z.boolean(),
  next_page: z.string().nullable(),
});
