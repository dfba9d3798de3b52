import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const wantedReplicasChangedV1 = defineEvent({
  type: 'wanted-replicas.changed.v1',
  context: 'scaling',
  aggregate: 'endpoint-scale',
  summary: 'The autoscaler changed how many replicas an endpoint should have, and says why.',
  schema: z.object({
    endpointId: id,
    from: z.int().nonnegative(),
    to: z.int().nonnegative(),
    /** The rule that fired. */
    rule: z.enum(['floor', 'ceiling', 'wake', 'queue', 'idle', 'retired', 'low-load']),
    reason: z.string().max(1_000),
    /** The figures the rule saw. */
    signals: z.record(z.string().max(100), z.number()),
  }),
  example: {
    endpointId: 'ep_01',
    from: 0,
    to: 1,
    rule: 'wake',
    reason: 'a request arrived at an endpoint with no replica',
    signals: { waiting: 1 },
  },
});

export type WantedReplicasChangedV1 = z.infer<typeof wantedReplicasChangedV1.schema>;
