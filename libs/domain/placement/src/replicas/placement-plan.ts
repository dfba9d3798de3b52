import type { PlacementRefusedV2, ReplicaPlacedV2 } from '@penstock/contract-events';

/** A replica to place; the caller gives it an id. */
export type PlannedPlacement = Omit<ReplicaPlacedV2, 'replicaId'>;

export interface PlannedDrain {
  readonly endpointId: string;
  readonly replicaId: string;
  readonly reason: string;
}

/** What is to be done, each with its reason. The same input gives the same plan. */
export interface PlacementPlan {
  readonly placements: readonly PlannedPlacement[];
  readonly drains: readonly PlannedDrain[];
  readonly refusals: readonly PlacementRefusedV2[];
  /** When a back-off ends and planning again makes sense; null when nothing waits for time. */
  readonly retryAtMs: number | null;
}
