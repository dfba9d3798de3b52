import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';
import { migInstance } from './node-joined.v2.js';

export const migInstanceCreatedV1 = defineEvent({
  type: 'mig.instance-created.v1',
  context: 'fleet',
  aggregate: 'mig-geometry',
  summary: 'An agent made a MIG instance, or found one that the log did not know.',
  schema: z.object({
    nodeId: id,
    acceleratorId: id,
    /** The change that asked for it; null for one that was found. */
    changeId: id.nullable(),
    ...migInstance.shape,
  }),
  example: { nodeId: 'node_01', acceleratorId: 'acc_01', changeId: 'mig_01', profile: '3g.40gb', start: 0, uuid: 'MIG-6d1b2f0e-1111-5222-8333-444455556666' },
});

export type MigInstanceCreatedV1 = z.infer<typeof migInstanceCreatedV1.schema>;
