import { defineEvent } from './define-event.js';
import type { z } from 'zod';
import { migInstanceCreatedV1 } from './mig-instance-created.v1.js';

export const migInstanceDestroyedV1 = defineEvent({
  type: 'mig.instance-destroyed.v1',
  context: 'fleet',
  aggregate: 'mig-geometry',
  summary: 'An agent took a MIG instance away that nobody used, or found one gone that the log knew.',
  schema: migInstanceCreatedV1.schema.omit({ uuid: true }),
  example: { nodeId: 'node_01', acceleratorId: 'acc_01', changeId: 'mig_01', profile: '1g.10gb', start: 0 },
});

export type MigInstanceDestroyedV1 = z.infer<typeof migInstanceDestroyedV1.schema>;
