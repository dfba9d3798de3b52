import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const nodeLostV1 = defineEvent({
  type: 'node.lost.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'A node stopped reporting, or said that it leaves; its replicas count as gone.',
  schema: z.object({
    nodeId: id,
    /** `missed-heartbeats` is a finding of the scheduler, `left` is said by the agent itself. */
    cause: z.enum(['missed-heartbeats', 'left']),
    reason: z.string().max(500),
  }),
  example: { nodeId: 'node_01', cause: 'missed-heartbeats', reason: 'no heartbeat for 10 s' },
});

export type NodeLostV1 = z.infer<typeof nodeLostV1.schema>;
