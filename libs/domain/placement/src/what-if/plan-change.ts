import type { ReservationMadeV1 } from '@penstock/contract-events';
import { CommittedFleet } from '../commitments/committed-fleet.js';
import type { FleetPlanner } from '../fleet/fleet-planner.js';
import type { FleetAssignment, FleetDemand, FleetNode } from '../fleet/fleet-types.js';
import { demandFor, nodesInOtherDomains, standFleet, type StandingReplica } from './standing-fleet.js';

/** What stands where, and what is promised. */
export interface FleetPicture {
  /** Nodes that are up. */
  readonly nodes: readonly FleetNode[];
  readonly replicas: readonly StandingReplica[];
  readonly commitments: readonly ReservationMadeV1[];
  readonly nowMs: number;
}

export interface FleetChange {
  readonly add: readonly FleetNode[];
  readonly removeNodeIds: ReadonlySet<string>;
  readonly loseDomains: ReadonlySet<string>;
}

/** Where something would stand. */
export interface PlannedSeat {
  readonly gpuType: string;
  readonly precision: string;
  readonly members: readonly { readonly nodeId: string; readonly gpus: readonly number[] }[];
  readonly migProfile: string | null;
  readonly computeMilli: number;
}

export interface ImaginedMove extends PlannedSeat {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly fromNodeIds: readonly string[];
}

export interface PlannedRefusal {
  readonly endpointId: string;
  /** null for a replica that does not exist yet. */
  readonly replicaId: string | null;
  readonly reason: string;
}

/** Dollars per hour of GPUs in use, and what no plan for the same replicas on the same kinds of GPU costs less than. */
export interface PlannedCost {
  readonly dollarsPerHour: number;
  readonly lowerBoundDollarsPerHour: number;
  readonly gpusInUse: number;
  readonly gpus: number;
}

export interface ChangePlan {
  readonly fits: boolean;
  readonly placed: readonly PlannedSeat[];
  readonly moves: readonly ImaginedMove[];
  readonly refused: readonly PlannedRefusal[];
  /** Promises that had room and would have none, at some time from now on. */
  readonly brokenReservations: readonly string[];
  readonly before: PlannedCost;
  readonly after: PlannedCost;
}

/** Moves that one plan proposes to make room or to empty GPUs. */
export const MOVES_MAX = 200;

/** What would become of a fleet that gains and loses nodes. What stands on nodes that stay is left alone. */
export function planFleetChange(picture: FleetPicture, change: FleetChange): ChangePlan {
  const { commitments, nowMs } = picture;
  const isGone = (node: FleetNode): boolean => change.removeNodeIds.has(node.nodeId) || change.loseDomains.has(node.failureDomain);
  const nodes = [...picture.nodes.filter((node) => !isGone(node)), ...change.add];
  const known = standFleet(picture.nodes, picture.replicas);
  const { planner, seated, homeless } = standFleet(nodes, known.seated);
  const moves: ImaginedMove[] = [];
  const refused: PlannedRefusal[] = [];
  const standing = [...seated];
  for (const replica of homeless) {
    const total = known.seated.filter(({ endpointId }) => endpointId === replica.endpointId).length;
    const outcome = arriveElsewhere(planner, nodes, picture.nodes, replica, standing.filter(({ endpointId }) => endpointId === replica.endpointId), total);
    if ('reason' in outcome) refused.push({ endpointId: replica.endpointId, replicaId: replica.replicaId, reason: outcome.reason });
    else {
      const seat = describeSeat(planner, outcome);
      moves.push({ ...seat, replicaId: replica.replicaId, endpointId: replica.endpointId, fromNodeIds: replica.members.map(({ nodeId }) => nodeId) });
      standing.push({ ...replica, members: seat.members });
    }
  }
  const brokenReservations = newlyBroken(picture.nodes, nodes, commitments, nowMs);
  return { fits: refused.length === 0 && brokenReservations.length === 0, placed: [], moves, refused, brokenReservations, before: costOf(known.planner), after: costOf(planner) };
}

/** What would become of a fleet that has to hold one endpoint more. Where nothing has room, others are moved closer together first. */
export function planDeployment(picture: FleetPicture, demand: FleetDemand): ChangePlan {
  const { planner, seated } = standFleet(picture.nodes, picture.replicas);
  const before = costOf(planner);
  const first = planner.state.pools.length === 0 ? noNode(demand) : planner.arrive(demand);
  const moves: ImaginedMove[] = [];
  let outcome = first;
  if ('reason' in first && demand.options.length > 0 && planner.state.pools.length > 0) {
    const byId = new Map(seated.map((replica) => [replica.replicaId, replica]));
    for (const replicaId of planner.consolidate(MOVES_MAX)) {
      const replica = byId.get(replicaId);
      const assignment = planner.assignments.get(replicaId);
      if (replica !== undefined && assignment !== undefined) moves.push({ ...describeSeat(planner, assignment), replicaId, endpointId: replica.endpointId, fromNodeIds: replica.members.map(({ nodeId }) => nodeId) });
    }
    outcome = planner.arrive(demand);
  }
  const failed = 'reason' in outcome;
  const refused = 'reason' in outcome ? [{ endpointId: demand.endpointId, replicaId: null, reason: outcome.reason }] : [];
  const placed = 'reason' in outcome ? [] : describeSeats(planner, outcome);
  return { fits: !failed, placed, moves: failed ? [] : moves, refused, brokenReservations: [], before, after: failed ? before : costOf(planner) };
}

function newlyBroken(before: readonly FleetNode[], after: readonly FleetNode[], commitments: readonly ReservationMadeV1[], nowMs: number): readonly string[] {
  const known = new Set(new CommittedFleet(before, commitments, nowMs, Number.POSITIVE_INFINITY).broken());
  return new CommittedFleet(after, commitments, nowMs, Number.POSITIVE_INFINITY).broken().filter((reservationId) => !known.has(reservationId));
}

function arriveElsewhere(planner: FleetPlanner, nodes: readonly FleetNode[], before: readonly FleetNode[], replica: StandingReplica, siblings: readonly StandingReplica[], total: number) {
  const stood = before.find(({ nodeId }) => nodeId === replica.members[0]?.nodeId);
  if (stood === undefined || planner.state.pools.length === 0) return noNode({ endpointId: replica.endpointId });
  const demand = demandFor(replica, stood);
  const spread = nodesInOtherDomains(nodes, siblings, total);
  const pinned = demand.pinnedNodeIds === null ? spread : spread === null ? demand.pinnedNodeIds : demand.pinnedNodeIds.filter((nodeId) => spread.includes(nodeId));
  return planner.arrive({ ...demand, pinnedNodeIds: pinned });
}

function noNode({ endpointId }: Pick<FleetDemand, 'endpointId'>): { readonly endpointId: string; readonly reason: string } {
  return { endpointId, reason: 'no node is left: add one' };
}

function costOf(planner: FleetPlanner): PlannedCost {
  const { state } = planner;
  return { dollarsPerHour: state.cost(), lowerBoundDollarsPerHour: state.pools.length === 0 ? 0 : Math.max(0, planner.lowerBound()), gpusInUse: state.gpusInUse(), gpus: state.nodeOf.length };
}

function describeSeat(planner: FleetPlanner, assignment: FleetAssignment): PlannedSeat {
  return describeSeats(planner, assignment)[0] as PlannedSeat;
}

function describeSeats({ state }: FleetPlanner, { option, seats }: FleetAssignment): readonly PlannedSeat[] {
  return seats.map(({ part, seat }) => ({
    gpuType: option.gpuType, precision: option.precision, migProfile: part.migProfile, computeMilli: part.computeMilli,
    members: seat.nodes.map((node) => ({ nodeId: state.nodes[node]?.nodeId ?? '', gpus: seat.gpus.filter((gpu) => state.nodeOf[gpu] === node).map((gpu) => gpu - (state.firstGpu[node] as number)) })),
  }));
}
