import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

export const placementRefusedV1 = defineEvent({
  type: 'placement.refused.v1',
  context: 'fleet',
  aggregate: 'endpoint-placement',
  summary: 'A wanted replica fits nowhere; said again only when the reason changes.',
  schema: z.object({
    endpointId: id,
    wantedReplicas: z.int().nonnegative(),
    placedReplicas: z.int().nonnegative(),
    code: z.enum(['no_node', 'no_engine', 'no_matching_accelerator', 'no_memory', 'start_backoff']),
    reason: z.string().max(1_000),
    candidates: z.array(z.object({ nodeId: id, excluded: z.string().max(500) })).max(100),
  }),
  example: {
    endpointId: 'ep_01',
    wantedReplicas: 2,
    placedReplicas: 1,
    code: 'no_memory',
    reason: '400 MB wanted, at most 120 MB free on one accelerator',
    candidates: [{ nodeId: 'node_01', excluded: '120 MB free of 25 GB' }],
  },
});

export type PlacementRefusedV1 = z.infer<typeof placementRefusedV1.schema>;
