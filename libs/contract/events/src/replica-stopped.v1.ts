import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const replicaStoppedV1 = defineEvent({
  type: 'replica.stopped.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'A replica ended as intended; what it held is free.',
  schema: z.object({
    replicaId: id,
    reason: z.string().max(1_000),
  }),
  example: { replicaId: 'rep_01', reason: 'drained' },
});

export type ReplicaStoppedV1 = z.infer<typeof replicaStoppedV1.schema>;
