import { FleetPlanner } from '../fleet/fleet-planner.js';
import type { FleetState } from '../fleet/fleet-state.js';
import { domainLimit, type FleetDemand, type FleetNode, type FleetPart, type FleetSeat } from '../fleet/fleet-types.js';

/** A replica that stands in the fleet, or was decided and is about to. */
export interface StandingReplica {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly part: FleetPart;
  readonly precision: string;
  /** Where its accelerators are, by their index on each node. */
  readonly members: readonly { readonly nodeId: string; readonly gpus: readonly number[] }[];
  /** First memory slice of its MIG instance. */
  readonly start: number | null;
  readonly demand: Pick<FleetDemand, 'allowsSpot' | 'pinnedNodeIds' | 'tolerations'>;
}

/** The seat in a state; undefined when a node of it, or a GPU on it, is not there. */
export function seatOf(state: FleetState, replica: StandingReplica): FleetSeat | undefined {
  const nodes: number[] = [];
  const gpus: number[] = [];
  for (const member of replica.members) {
    const node = state.nodes.findIndex(({ nodeId }) => nodeId === member.nodeId);
    const count = state.nodes[node]?.gpus ?? 0;
    if (node < 0 || member.gpus.some((gpu) => gpu >= count)) return undefined;
    nodes.push(node);
    gpus.push(...member.gpus.map((gpu) => (state.firstGpu[node] as number) + gpu));
  }
  return { gpus, nodes, start: replica.start };
}

/** The replica as a demand of its own, which may stand on its kind of hardware only. */
export function demandFor(replica: StandingReplica, hardware: Pick<FleetNode, 'gpuType' | 'sharing'>): FleetDemand {
  return {
    ...replica.demand, endpointId: replica.replicaId, hint: '',
    options: [{ gpuType: hardware.gpuType, sharing: hardware.sharing, precision: replica.precision, parts: [replica.part] }],
  };
}

export interface StandingFleet {
  readonly planner: FleetPlanner;
  /** Replicas that found their place; each is an assignment of the planner under its own id. */
  readonly seated: readonly StandingReplica[];
  /** Replicas whose place is gone or taken. */
  readonly homeless: readonly StandingReplica[];
}

/** A planner in which everything stands where it stands. `isKept` says who is not to be put there. */
export function standFleet(nodes: readonly FleetNode[], replicas: readonly StandingReplica[], isKept: (replica: StandingReplica) => boolean = () => true): StandingFleet {
  const planner = new FleetPlanner(nodes);
  const seated: StandingReplica[] = [];
  const homeless: StandingReplica[] = [];
  for (const replica of replicas) {
    const seat = isKept(replica) ? seatOf(planner.state, replica) : undefined;
    const node = seat === undefined ? undefined : planner.state.nodes[seat.nodes[0] ?? -1];
    if (seat === undefined || node === undefined || !planner.adopt(demandFor(replica, node), { part: replica.part, seat })) homeless.push(replica);
    else seated.push(replica);
  }
  return { planner, seated, homeless };
}

/** Nodes in failure domains that may take one more replica of the endpoint; null where all may. */
export function nodesInOtherDomains(nodes: readonly FleetNode[], siblings: readonly StandingReplica[], total: number): readonly string[] | null {
  const domainOf = new Map(nodes.map((node) => [node.nodeId, node.failureDomain]));
  if (total < 2 || new Set(domainOf.values()).size < 2) return null;
  const counts = new Map<string, number>();
  for (const { members } of siblings) for (const domain of new Set(members.map(({ nodeId }) => domainOf.get(nodeId) ?? ''))) counts.set(domain, (counts.get(domain) ?? 0) + 1);
  const limit = domainLimit(total);
  return nodes.filter((node) => (counts.get(node.failureDomain) ?? 0) < limit).map(({ nodeId }) => nodeId);
}
