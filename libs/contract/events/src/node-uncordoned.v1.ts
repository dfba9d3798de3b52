import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const nodeUncordonedV1 = defineEvent({
  type: 'node.uncordoned.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'An operator opened a node to new replicas again and ended its drain.',
  schema: z.object({ nodeId: id, reason: z.string().max(500) }),
  example: { nodeId: 'node_01', reason: 'upgraded' },
});

export type NodeUncordonedV1 = z.infer<typeof nodeUncordonedV1.schema>;
