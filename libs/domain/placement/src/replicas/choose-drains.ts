import { compareText } from './compare-text.js';
import type { PlacedReplica, PlacementDemand } from './placement-input.js';
import type { PlannedDrain } from './placement-plan.js';

/** One of the wanted replicas: a replica, and the one that is to take its place, if any. */
export interface ReplicaUnit {
  readonly replica: PlacedReplica;
  readonly successor: PlacedReplica | undefined;
}

/** The demand's replicas, each with its successor; a successor whose predecessor is gone is a replica like any other. */
export function unitsOf(demand: Pick<PlacementDemand, 'replicas'>): readonly ReplicaUnit[] {
  const ids = new Set(demand.replicas.map((replica) => replica.replicaId));
  const successors = new Map(demand.replicas.flatMap((replica) => (replica.replaces !== null && ids.has(replica.replaces) ? [[replica.replaces, replica] as const] : [])));
  const isSuccessor = new Set([...successors.values()].map((replica) => replica.replicaId));
  return demand.replicas.filter((replica) => !isSuccessor.has(replica.replicaId)).map((replica) => ({ replica, successor: successors.get(replica.replicaId) }));
}

/** How many of the wanted replicas there are: a replica and its successor count once. */
export function countOf(demand: Pick<PlacementDemand, 'replicas' | 'pending'>): number {
  const ids = new Set(demand.replicas.map((replica) => replica.replicaId));
  return unitsOf(demand).length + demand.pending.filter(({ replaces }) => replaces === null || !ids.has(replaces)).length;
}

/** Replicas whose successor is ready, and those above the wanted number: on nodes that are to become empty first, then those not ready, the least loaded, the youngest. */
export function chooseDrains(demand: PlacementDemand, isLeaving: (nodeId: string) => boolean): readonly PlannedDrain[] {
  const { endpointId } = demand;
  const units = unitsOf(demand);
  const excess = units.length - demand.wanted;
  const drains = (replica: PlacedReplica, reason: string): PlannedDrain => ({ endpointId, replicaId: replica.replicaId, reason });
  const surplus = excess <= 0 ? [] : [...units].sort((one, other) => dispensableFirst(one, other, isLeaving)).slice(0, excess);
  return units.flatMap((unit) => {
    const { replica, successor } = unit;
    if (surplus.includes(unit)) return [replica, ...(successor === undefined ? [] : [successor])].map((one) => drains(one, demand.drainReason));
    return successor?.isReady === true ? [drains(replica, `${successor.replicaId} is ready in its place`)] : [];
  });
}

/** Which of two wanted replicas is missed least. */
export function dispensableFirst({ replica: one }: ReplicaUnit, { replica: other }: ReplicaUnit, isLeaving: (nodeId: string) => boolean): number {
  return (
    Number(other.nodeIds.some(isLeaving)) - Number(one.nodeIds.some(isLeaving)) ||
    Number(one.isReady) - Number(other.isReady) ||
    (one.running ?? 0) - (other.running ?? 0) ||
    other.placedAtMs - one.placedAtMs ||
    compareText(one.replicaId, other.replicaId)
  );
}
