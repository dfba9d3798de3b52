import type { ReplicaView } from '@penstock/contract-commands';
import type { ReplicaFacts } from './replica-facts.js';

/** A replica as lists show it, out of the memory or out of a database. */
export function toReplicaView(facts: ReplicaFacts, phaseSinceMs: number, placedAtMs: number): ReplicaView {
  const { replicaId, endpointId, modelVersionId, nodeId, acceleratorIds, members, reservedBytes, computeMilli, mig, option, replaces, phase, url, engine, slots, placementReason, reason } = facts;
  return {
    replicaId, endpointId, modelVersionId, nodeId, reservedBytes, computeMilli, mig, option, replaces, phase, url, engine, slots, placementReason, reason,
    acceleratorIds: [...acceleratorIds],
    members: members.map((member) => ({ nodeId: member.nodeId, acceleratorIds: [...member.acceleratorIds] })),
    phaseSince: new Date(phaseSinceMs).toISOString(),
    createdAt: new Date(placedAtMs).toISOString(),
  };
}
