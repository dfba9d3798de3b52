import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const batchJobCancelRequestedV1 = defineEvent({
  type: 'batch-job.cancel-requested.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'Somebody asked to stop a batch job; lines that run are finished.',
  schema: z.object({
    batchId: id,
  }),
  example: { batchId: 'batch_01' },
});

export type BatchJobCancelRequestedV1 = z.infer<typeof batchJobCancelRequestedV1.schema>;
