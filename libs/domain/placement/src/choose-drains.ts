import { compareText } from './candidates.js';
import type { PlacedReplica, PlacementDemand } from './placement-input.js';
import type { PlannedDrain } from './placement-plan.js';

/** Which replicas go when there are more than wanted: those not ready first, then the least loaded, then the youngest. */
export function chooseDrains(demand: PlacementDemand): readonly PlannedDrain[] {
  const excess = demand.replicas.length - demand.wanted;
  if (excess <= 0) return [];
  return [...demand.replicas]
    .sort(dispensableFirst)
    .slice(0, excess)
    .map((replica) => ({ endpointId: demand.endpointId, replicaId: replica.replicaId, reason: demand.drainReason }));
}

function dispensableFirst(one: PlacedReplica, other: PlacedReplica): number {
  return (
    Number(one.isReady) - Number(other.isReady) ||
    (one.running ?? 0) - (other.running ?? 0) ||
    other.placedAtMs - one.placedAtMs ||
    compareText(one.replicaId, other.replicaId)
  );
}
