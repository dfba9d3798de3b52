import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const migChangeEndedV1 = defineEvent({
  type: 'mig.change-ended.v1',
  context: 'fleet',
  aggregate: 'mig-geometry',
  summary: 'A change of MIG instances is over: every step was taken, one failed, or nobody needs it any more.',
  schema: z.object({
    changeId: id,
    nodeId: id,
    acceleratorId: id,
    outcome: z.enum(['done', 'failed', 'abandoned']),
    reason: z.string().max(1_000),
  }),
  example: { changeId: 'mig_01', nodeId: 'node_01', acceleratorId: 'acc_01', outcome: 'done', reason: '2 steps taken' },
});

export type MigChangeEndedV1 = z.infer<typeof migChangeEndedV1.schema>;
