import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const nodeCordonedV1 = defineEvent({
  type: 'node.cordoned.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'An operator closed a node to new replicas; what runs there goes on.',
  schema: z.object({ nodeId: id, reason: z.string().max(500) }),
  example: { nodeId: 'node_01', reason: 'kernel upgrade on Monday' },
});

export type NodeCordonedV1 = z.infer<typeof nodeCordonedV1.schema>;
