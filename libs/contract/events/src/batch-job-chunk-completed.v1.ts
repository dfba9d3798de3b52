import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const batchJobChunkCompletedV1 = defineEvent({
  type: 'batch-job.chunk-completed.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'Every line of one chunk has its output; the chunk is a checkpoint and is not run again.',
  schema: z.object({
    batchId: id,
    /** From 0. */
    chunk: z.int().nonnegative(),
    completed: z.int().nonnegative(),
    failed: z.int().nonnegative(),
    outputKey: z.string().max(1_024).nullable(),
    errorKey: z.string().max(1_024).nullable(),
  }),
  example: { batchId: 'batch_01', chunk: 0, completed: 49, failed: 1, outputKey: 'batches/batch_01/output/0', errorKey: 'batches/batch_01/error/0' },
});

export type BatchJobChunkCompletedV1 = z.infer<typeof batchJobChunkCompletedV1.schema>;
