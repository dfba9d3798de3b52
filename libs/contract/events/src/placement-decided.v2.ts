import type { z } from 'zod';
import { defineEvent } from './define-event.js';
import { replicaPlacedV2 } from './replica-placed.v2.js';

/**
 * The fleet's one ledger of placements. Its expected version is what keeps two schedulers from giving the same memory,
 * compute or MIG slice away twice: a placement counts from here on, and `replica.placed` on the replica itself follows from it.
 */
export const placementDecidedV2 = defineEvent({
  type: 'placement.decided.v2',
  context: 'fleet',
  aggregate: 'placement-ledger',
  summary: 'A scheduler reserved room for a new replica, on all nodes of a gang at once; `replica.placed` with the same body follows.',
  schema: replicaPlacedV2.schema,
  example: replicaPlacedV2.example,
});

export type PlacementDecidedV2 = z.infer<typeof placementDecidedV2.schema>;
