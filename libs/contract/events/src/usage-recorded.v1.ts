import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant, milliseconds, modelName, tokens } from './fields.js';

export const usageRecordedV1 = defineEvent({
  type: 'usage.recorded.v1',
  context: 'usage',
  aggregate: '<organisation>',
  summary: 'One request ended, in whatever way; this is what it used. The subject is `ev.usage.<organisation>.<endpoint>`.',
  schema: z.object({
    /** Unique per request; sinks count an id once however often it arrives. */
    requestId: id,
    organisationId: id,
    projectId: id,
    keyId: id,
    endpointId: id,
    modelName,
    modelVersionId: id,
    replicaId: id.nullable(),
    batchId: id.nullable(),
    /** `infer` is one inference on tensors, which has no tokens. */
    operation: z.enum(['chat', 'completions', 'embeddings', 'infer']),
    stream: z.boolean(),
    /** `aborted`: the client went away. `interrupted`: the gateway died meanwhile and settled it after its restart. */
    status: z.enum(['completed', 'aborted', 'failed', 'interrupted']),
    finishReason: z.string().max(50).nullable(),
    httpStatus: z.int(),
    errorCode: z.string().max(100).nullable(),
    promptTokens: tokens,
    cachedTokens: tokens,
    completionTokens: tokens,
    reasoningTokens: tokens,
    /** False when the engine said the counts; true when they were counted from what was delivered. */
    tokensEstimated: z.boolean(),
    startedAt: instant,
    queueMs: milliseconds,
    ttftMs: milliseconds.nullable(),
    durationMs: milliseconds,
    /** Time the request held a slot of the engine. */
    engineMs: milliseconds,
  }),
  example: {
    requestId: 'req_01',
    organisationId: 'org_01',
    projectId: 'proj_01',
    keyId: 'key_01',
    endpointId: 'ep_01',
    modelName: 'smollm2-135m-instruct',
    modelVersionId: 'mv_01',
    replicaId: 'rep_01',
    batchId: null,
    operation: 'chat',
    stream: true,
    status: 'completed',
    finishReason: 'stop',
    httpStatus: 200,
    errorCode: null,
    promptTokens: 32,
    cachedTokens: 24,
    completionTokens: 8,
    reasoningTokens: 0,
    tokensEstimated: false,
    startedAt: '2026-11-29T12:00:00.000Z',
    queueMs: 0.4,
    ttftMs: 21.5,
    durationMs: 140.2,
    engineMs: 139.1,
  },
});

export type UsageRecordedV1 = z.infer<typeof usageRecordedV1.schema>;
