import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const endpointRetiredV1 = defineEvent({
  type: 'endpoint.retired.v1',
  context: 'registry',
  aggregate: 'endpoint',
  summary: 'An endpoint was taken out of service; its replicas are to stop.',
  schema: z.object({
    endpointId: id,
    reason: z.string().max(500),
  }),
  example: { endpointId: 'ep_01', reason: 'deleted by its owner' },
});

export type EndpointRetiredV1 = z.infer<typeof endpointRetiredV1.schema>;
