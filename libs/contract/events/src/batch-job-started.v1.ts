import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, modelName } from './fields.js';

export const batchJobStartedV1 = defineEvent({
  type: 'batch-job.started.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'The input was valid; its lines are being worked on.',
  schema: z.object({
    batchId: id,
    total: z.int().positive(),
    modelName,
  }),
  example: { batchId: 'batch_01', total: 100, modelName: 'smollm2-135m-instruct' },
});

export type BatchJobStartedV1 = z.infer<typeof batchJobStartedV1.schema>;
