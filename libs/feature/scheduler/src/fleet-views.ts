import type { NodeView, ReplicaView } from '@penstock/contract-commands';
import { isLiving, toReplicaView, type FleetState, type NodeState } from '@penstock/domain-lifecycle';

/** The fleet out of the memory, in the shape and order of the database's answer. */
export function viewFleet(fleet: FleetState, includeEnded: boolean): { readonly nodes: NodeView[]; readonly replicas: ReplicaView[] } {
  const replicas = [...fleet.replicas.values()].filter((replica) => includeEnded || isLiving(replica.phase));
  return {
    nodes: [...fleet.nodes.values()].map((node) => withGeometries(viewNode(node), fleet)).sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1)),
    replicas: replicas.sort((a, b) => b.placedAtMs - a.placedAtMs || (a.replicaId < b.replicaId ? 1 : -1)).map((replica) => toReplicaView(replica, replica.phaseSinceMs, replica.placedAtMs)),
  };
}

export function viewNode({ joinedAtMs, ...node }: NodeState): NodeView {
  return { ...node, joinedAt: new Date(joinedAtMs).toISOString() };
}


/** The node with the MIG instances that are there now; what it reported when it joined may be older. */
export function withGeometries(node: NodeView, { geometries }: FleetState): NodeView {
  return {
    ...node,
    accelerators: node.accelerators.map((accelerator) => {
      const geometry = geometries.get(accelerator.acceleratorId);
      return accelerator.mig === null || geometry === undefined ? accelerator : { ...accelerator, mig: { ...accelerator.mig, instances: geometry.instances.map((instance) => ({ ...instance })) } };
    }),
  };
}
