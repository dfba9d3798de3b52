import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { placementRefusedV1 } from './placement-refused.v1.js';

export const placementRefusedV2 = defineEvent({
  type: 'placement.refused.v2',
  context: 'fleet',
  aggregate: 'endpoint-placement',
  summary: 'A wanted replica fits nowhere, with what would fit where that is known; said again only when the reason changes.',
  schema: placementRefusedV1.schema.extend({
    code: z.enum([
      ...placementRefusedV1.schema.shape.code.options,
      /** Compute, CPU, host memory or slices are short, though some memory is free. */
      'no_room',
      /** Pins, taints, cordons, the market or the failure domains leave no node. */
      'not_allowed',
      /** No node of this kind could hold it, even empty. */
      'impossible',
      /** The room is kept for a reservation. */
      'reserved',
      /** Others are below their fair share. */
      'fair_share',
    ]),
    /** What would fit, or what to change; null where nothing is known. */
    hint: z.string().max(1_000).nullable(),
  }),
  example: { ...placementRefusedV1.example, hint: '1 more accelerator with 400 MB would hold it' },
});

export type PlacementRefusedV2 = z.infer<typeof placementRefusedV2.schema>;
