import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const nodeDrainRequestedV1 = defineEvent({
  type: 'node.drain-requested.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'An operator wants a node empty: it is closed, and each of its replicas drains once another one is ready in its place.',
  schema: z.object({ nodeId: id, reason: z.string().max(500) }),
  example: { nodeId: 'node_01', reason: 'kernel upgrade' },
});

export type NodeDrainRequestedV1 = z.infer<typeof nodeDrainRequestedV1.schema>;
