import type { z } from 'zod';
import { defineEvent } from './define-event.js';
import { replicaPlacedV1 } from './replica-placed.v1.js';

/**
 * The fleet's one ledger of placements. Its expected version is what keeps two schedulers from giving the same memory
 * away twice: a placement counts from here on, and `replica.placed` on the replica itself follows from it.
 */
export const placementDecidedV1 = defineEvent({
  type: 'placement.decided.v1',
  context: 'fleet',
  aggregate: 'placement-ledger',
  summary: 'A scheduler reserved a node for a new replica; `replica.placed` with the same body follows.',
  schema: replicaPlacedV1.schema,
  example: replicaPlacedV1.example,
});

export type PlacementDecidedV1 = z.infer<typeof placementDecidedV1.schema>;
