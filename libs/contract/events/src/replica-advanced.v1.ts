import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const replicaAdvancedV1 = defineEvent({
  type: 'replica.advanced.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'A replica entered the next phase of its start.',
  schema: z.object({
    replicaId: id,
    phase: z.enum(['pulling', 'loading', 'warming']),
  }),
  example: { replicaId: 'rep_01', phase: 'pulling' },
});

export type ReplicaAdvancedV1 = z.infer<typeof replicaAdvancedV1.schema>;
