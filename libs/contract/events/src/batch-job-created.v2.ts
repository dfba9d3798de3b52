import { z } from 'zod';
import { batchJobCreatedV1 } from './batch-job-created.v1.js';
import { defineEvent } from './define-event.js';

export const batchJobCreatedV2 = defineEvent({
  type: 'batch-job.created.v2',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'A batch job was accepted; its input is validated next.',
  schema: batchJobCreatedV1.schema.extend({
    endpoint: z.enum(['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses', '/v1/moderations']),
    /** How long its result files are kept, in seconds after each was made; null for as long as nobody deletes them. */
    outputExpiresAfterSeconds: z.int().min(3_600).max(2_592_000).nullable(),
  }),
  example: { ...batchJobCreatedV1.example, endpoint: '/v1/responses', outputExpiresAfterSeconds: 86_400 },
});

export type BatchJobCreatedV2 = z.infer<typeof batchJobCreatedV2.schema>;
