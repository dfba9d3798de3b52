import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const replicaDrainStartedV1 = defineEvent({
  type: 'replica.drain-started.v1',
  context: 'fleet',
  aggregate: 'replica',
  summary: 'A replica takes no new requests and stops once the running ones end.',
  schema: z.object({
    replicaId: id,
    reason: z.string().max(1_000),
  }),
  example: { replicaId: 'rep_01', reason: 'scale to zero: idle for 300 s' },
});

export type ReplicaDrainStartedV1 = z.infer<typeof replicaDrainStartedV1.schema>;
