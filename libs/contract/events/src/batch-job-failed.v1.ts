import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const batchJobFailedV1 = defineEvent({
  type: 'batch-job.failed.v1',
  context: 'batch',
  aggregate: 'batch-job',
  summary: 'The input was not valid: nothing was run.',
  schema: z.object({
    batchId: id,
    errors: z.array(z.object({ code: z.string().max(100), message: z.string().max(1_000), param: z.string().max(200).nullable(), line: z.int().positive().nullable() })).min(1).max(100),
  }),
  example: { batchId: 'batch_01', errors: [{ code: 'invalid_json_line', message: 'Line 3 is not JSON.', param: null, line: 3 }] },
});

export type BatchJobFailedV1 = z.infer<typeof batchJobFailedV1.schema>;
