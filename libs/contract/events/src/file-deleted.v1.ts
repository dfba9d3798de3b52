import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const fileDeletedV1 = defineEvent({
  type: 'file.deleted.v1',
  context: 'batch',
  aggregate: 'file',
  summary: 'A file was deleted by its owner or by its expiry.',
  schema: z.object({
    fileId: id,
    reason: z.enum(['owner', 'expired']),
  }),
  example: { fileId: 'file_01', reason: 'owner' },
});

export type FileDeletedV1 = z.infer<typeof fileDeletedV1.schema>;
