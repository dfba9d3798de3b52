import { limitMet } from '@penstock/contract-commands';
import { z } from 'zod';

/** One limit that the caller is under, as far as it is used now. */
export const ownLimit = z.object({
  object: z.literal('limit'),
  subject: z.enum(['organisation', 'project', 'key']),
  subject_id: z.string(),
  /** One model; null for all models together. */
  model: z.string().nullable(),
  name: z.enum(['requests_per_minute', 'tokens_per_minute', 'concurrency']),
  limit: z.number(),
  /** Used now, or held by other gateways for use. */
  used: z.number(),
  remaining: z.number(),
  /** When all of it is free again, if nothing more is used. */
  reset_ms: z.number(),
  /** When one more request may pass; 0 when it may now. */
  retry_after_ms: z.number(),
});

/** Answer of `GET /v1/limits`. */
export const ownLimits = z.object({
  object: z.literal('list'),
  data: z.array(ownLimit),
  organisation_id: z.string(),
  project_id: z.string(),
  key_id: z.string(),
  /** For all models; those of one model stand in `models`. Null where nothing is set. */
  context_tokens_max: z.int().nullable(),
  priority_tier: z.string(),
  models: z.record(z.string(), z.object({ context_tokens_max: z.int().nullable(), priority_tier: z.string() })),
});
export type OwnLimits = z.infer<typeof ownLimits>;

/** Answer of `GET /v1/requests/{request_id}`: what became of a request, and why it took as long as it did. */
export const requestExplanation = z.object({
  id: z.string(),
  object: z.literal('request.explanation'),
  /** `refused`: it never reached a replica. */
  status: z.enum(['completed', 'aborted', 'failed', 'interrupted', 'refused']),
  http_status: z.int(),
  error: z.object({ code: z.string(), message: z.string().nullable(), limit: limitMet.nullable(), retry_after_ms: z.number().nullable() }).nullable(),
  model: z.string().nullable(),
  operation: z.string().nullable(),
  batch_id: z.string().nullable(),
  /** Unix seconds. */
  started_at: z.number(),
  timings: z.object({ queue_ms: z.number(), time_to_first_token_ms: z.number().nullable(), engine_ms: z.number(), duration_ms: z.number() }).nullable(),
  usage: z.object({ prompt_tokens: z.int(), cached_tokens: z.int(), completion_tokens: z.int() }).nullable(),
  replica_id: z.string().nullable(),
  /** Where the replica runs or ran; told to the operator of the installation only. */
  node_id: z.string().nullable(),
  /** The start of a replica that the request waited for; null when there was none, or nothing is known of it any more. */
  cold_start: z.object({ placed_at: z.number(), ready_at: z.number() }).nullable(),
  /** The same in sentences, the most important first. */
  why: z.array(z.string()),
});
export type RequestExplanation = z.infer<typeof requestExplanation>;
