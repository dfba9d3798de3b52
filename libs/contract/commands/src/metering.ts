import { id, usageRecordedV1 } from '@penstock/contract-events';
import { z } from 'zod';
import { defineCommand } from './define-command.js';

export const usageGroup = z.enum(['project_id', 'user_id', 'api_key_id', 'model', 'batch', 'service_tier']);
export type UsageGroup = z.infer<typeof usageGroup>;

/** One result of one bucket, in the shape of OpenAI's `organization.usage.completions.result`. */
export const usageResult = z.object({
  object: z.literal('organization.usage.completions.result'),
  input_tokens: z.int(),
  output_tokens: z.int(),
  input_cached_tokens: z.int(),
  input_audio_tokens: z.int(),
  output_audio_tokens: z.int(),
  num_model_requests: z.int(),
  project_id: z.string().nullable(),
  user_id: z.string().nullable(),
  api_key_id: z.string().nullable(),
  model: z.string().nullable(),
  batch: z.boolean().nullable(),
  service_tier: z.string().nullable(),
});

export const usageBucket = z.object({
  object: z.literal('bucket'),
  /** Unix seconds. */
  start_time: z.int(),
  end_time: z.int(),
  results: z.array(usageResult),
});

export const queryUsage = defineCommand({
  subject: 'qry.metering.usage',
  summary: 'Token usage of one organisation in time buckets, from ClickHouse, each request counted once.',
  request: z.object({
    organisationId: id,
    operation: z.enum(['completions', 'embeddings']).default('completions'),
    /** Unix seconds, inclusive. */
    startTime: z.int().nonnegative(),
    /** Unix seconds, exclusive. */
    endTime: z.int().nonnegative(),
    bucketWidth: z.enum(['1m', '1h', '1d']).default('1d'),
    groupBy: z.array(usageGroup).default([]),
    projectIds: z.array(id).default([]),
    apiKeyIds: z.array(id).default([]),
    models: z.array(z.string()).default([]),
    /** Only this one request: how a caller reads back what one answer used. */
    requestId: id.optional(),
    limit: z.int().min(1).max(1_440),
    page: z.string().max(200).nullable().default(null),
  }),
  reply: z.object({ buckets: z.array(usageBucket), nextPage: z.string().nullable() }),
});

export const getRequestUsage = defineCommand({
  subject: 'qry.metering.request',
  summary: 'The record of one request; null when none has arrived.',
  request: z.object({
    requestId: id,
    /** Only a request of this organisation; any when left out. */
    organisationId: id.optional(),
  }),
  reply: z.object({ record: usageRecordedV1.schema.nullable() }),
});

export const getUsageTotals = defineCommand({
  subject: 'qry.metering.totals',
  summary: 'Distinct requests and token sums over everything recorded, per sink, for reconciliation.',
  request: z.object({ organisationId: id.optional() }),
  reply: z.object({ requests: z.int(), promptTokens: z.int(), completionTokens: z.int(), rows: z.int(), lastSequence: z.int() }),
});
