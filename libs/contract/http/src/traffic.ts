import { z } from 'zod';

const sticky = z.enum(['session', 'user', 'organisation', 'request']);

/** Spreads a name over endpoints, or replaces the split that it has. */
export const setTrafficSplitRequest = z.strictObject({
  /** What clients call: a new name, or that of an endpoint, which then gets only its own share. */
  model: z.string().min(1).max(200),
  /** Each endpoint by its name or its id. Weights count against their sum; one of 0 takes nothing, which rolls it back at once. */
  targets: z.array(z.strictObject({ endpoint: z.string().min(1).max(200), weight: z.int().min(0).max(1_000_000) })).min(1).max(16),
  /**
   * Whose requests stay at one endpoint. `session`: the header `x-session-id`, or `prompt_cache_key`; `user`: `user`, or
   * `safety_identifier`; each takes the other where its own is missing, and a request that names neither is drawn by itself.
   */
  sticky: sticky.default('user'),
  reason: z.string().max(500).default(''),
});

export const trafficSplitBody = z.object({
  id: z.string(),
  model: z.string(),
  organisation_id: z.string().nullable(),
  targets: z.array(z.object({
    endpoint_id: z.string(),
    endpoint: z.string(),
    model_version_id: z.string().nullable(),
    weight: z.int(),
    /** Of the requests, from 0 to 1; 0 for an endpoint that was retired. */
    share: z.number(),
  })),
  sticky,
  reason: z.string(),
  set_at: z.int(),
});
export type TrafficSplitBody = z.infer<typeof trafficSplitBody>;
export const trafficSplitList = z.object({ data: z.array(trafficSplitBody) });
export const trafficSplitRemoved = z.object({ id: z.string() });
