import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';

export const batchJobCreatedV1 = defineEvent({
  type: 'batch-job.created.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'A batch job was accepted; its input is validated next.',
  schema: z.object({
    batchId: id,
    organisationId: id,
    projectId: id,
    keyId: id,
    inputFileId: id,
    endpoint: z.enum(['/v1/chat/completions', '/v1/completions', '/v1/embeddings']),
    completionWindowSeconds: z.int().positive(),
    metadata: z.record(z.string().max(64), z.string().max(512)).nullable(),
    expiresAt: instant,
  }),
  example: {
    batchId: 'batch_01',
    organisationId: 'org_01',
    projectId: 'proj_01',
    keyId: 'key_01',
    inputFileId: 'file_01',
    endpoint: '/v1/chat/completions',
    completionWindowSeconds: 86_400,
    metadata: null,
    expiresAt: '2026-11-30T12:00:00.000Z',
  },
});

export type BatchJobCreatedV1 = z.infer<typeof batchJobCreatedV1.schema>;
