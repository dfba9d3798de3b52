import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const batchJobFinishedV1 = defineEvent({
  type: 'batch-job.finished.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'A batch job ended: its output and error files are there.',
  schema: z.object({
    batchId: id,
    status: z.enum(['completed', 'cancelled', 'expired']),
    completed: z.int().nonnegative(),
    failed: z.int().nonnegative(),
    outputFileId: id.nullable(),
    errorFileId: id.nullable(),
  }),
  example: { batchId: 'batch_01', status: 'completed', completed: 99, failed: 1, outputFileId: 'file_02', errorFileId: 'file_03' },
});

export type BatchJobFinishedV1 = z.infer<typeof batchJobFinishedV1.schema>;
