import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id, instant } from './fields.js';

export const nodeReclaimAnnouncedV1 = defineEvent({
  type: 'node.reclaim-announced.v1',
  context: 'fleet',
  aggregate: 'node',
  summary: 'The owner of a spot node takes it back at the given time; its replicas are replaced before, as far as the time allows.',
  schema: z.object({ nodeId: id, reclaimAt: instant, reason: z.string().max(500) }),
  example: { nodeId: 'node_01', reclaimAt: '2026-11-29T12:02:00.000Z', reason: 'two minutes of notice by the provider' },
});

export type NodeReclaimAnnouncedV1 = z.infer<typeof nodeReclaimAnnouncedV1.schema>;
