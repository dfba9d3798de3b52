import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const trafficSplitRemovedV1 = defineEvent({
  type: 'traffic-split.removed.v1',
  context: 'registry',
  aggregate: 'traffic-split',
  summary: 'A name is spread over endpoints no longer: it is the endpoint of that name again, or nothing.',
  schema: z.object({ splitId: id, reason: z.string().max(500) }),
  example: { splitId: 'split_01', reason: 'the new weights serve everybody' },
});

export type TrafficSplitRemovedV1 = z.infer<typeof trafficSplitRemovedV1.schema>;
