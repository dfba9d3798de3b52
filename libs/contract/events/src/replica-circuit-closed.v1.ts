import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const replicaCircuitClosedV1 = defineEvent({
  type: 'replica-circuit.closed.v1',
  context: 'routing',
  aggregate: 'replica-circuit',
  summary: 'A replica answers again and takes requests.',
  schema: z.object({
    replicaId: id,
    endpointId: id,
  }),
  example: { replicaId: 'rep_01', endpointId: 'ep_01' },
});

export type ReplicaCircuitClosedV1 = z.infer<typeof replicaCircuitClosedV1.schema>;
