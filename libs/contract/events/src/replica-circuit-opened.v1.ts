import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';

export const replicaCircuitOpenedV1 = defineEvent({
  type: 'replica-circuit.opened.v1',
  context: 'routing',
  aggregate: 'replica-circuit',
  summary: 'A router stopped sending requests to a replica because of what it saw in traffic.',
  schema: z.object({
    replicaId: id,
    endpointId: id,
    reason: z.string().max(500),
    failures: z.int().positive(),
    retryAt: instant,
  }),
  example: { replicaId: 'rep_01', endpointId: 'ep_01', reason: '5 of the last 5 requests failed', failures: 5, retryAt: '2026-11-29T12:00:10.000Z' },
});

export type ReplicaCircuitOpenedV1 = z.infer<typeof replicaCircuitOpenedV1.schema>;
