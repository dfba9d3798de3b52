import type { NodeJoinedV2, PlacementDecidedV2, PlacementRefusedV2 } from '@penstock/contract-events';
import type { MigGeometryState } from './mig-geometry.js';
import type { NodeOperations } from './node.js';
import type { ReplicaFacts } from './replica-facts.js';
import { isLiving } from './replica-phase.js';
import type { KnownProfile } from './replica-profile.js';

export interface NodeState extends NodeJoinedV2, NodeOperations {
  readonly status: 'up' | 'lost';
  readonly statusReason: string | null;
  readonly joinedAtMs: number;
}

export interface ReplicaState extends ReplicaFacts {
  readonly placedAtMs: number;
  readonly phaseSinceMs: number;
  /** When it first answered; null when it never did. */
  readonly readyAtMs: number | null;
}

/** What every service knows about the fleet. */
export interface FleetState {
  readonly nodes: Map<string, NodeState>;
  /** Living replicas, and the newest {@link ENDED_REPLICAS_MAX} that ended. */
  readonly replicas: Map<string, ReplicaState>;
  /** Ended replicas, oldest first. */
  readonly endedReplicaIds: string[];
  readonly ledger: PlacementLedger;
  /** Endpoints that have fewer replicas than wanted, with the reason; gone once a replica of theirs is placed. */
  readonly refusals: Map<string, PlacementRefusedV2>;
  /** MIG instances by accelerator, as agents and their steps tell; gone with its node. */
  readonly geometries: Map<string, MigGeometryState>;
  /** What replicas measured, the newest by `profileKey`, at most {@link PROFILES_MAX}. */
  readonly profiles: Map<string, KnownProfile>;
}

/** The fleet-wide ledger as far as this process has read it. */
export interface PlacementLedger {
  /** Stream sequence of its newest entry, the version that the next entry expects; 0 while it is empty. */
  lastSequence: number;
  /** Decided, and `replica.placed` has not followed yet. They hold memory all the same. */
  readonly pending: Map<string, PlacementDecidedV2>;
}

/** Living replicas of one endpoint, oldest first. */
export function replicasOf(state: FleetState, endpointId: string): readonly ReplicaState[] {
  return select(state, (replica) => replica.endpointId === endpointId && isLiving(replica.phase));
}

/** Replicas of one endpoint that take traffic, oldest first. */
export function readyReplicasOf(state: FleetState, endpointId: string): readonly ReplicaState[] {
  return select(state, (replica) => replica.endpointId === endpointId && replica.phase === 'ready');
}

function select(state: FleetState, matches: (replica: ReplicaState) => boolean): readonly ReplicaState[] {
  const found: ReplicaState[] = [];
  for (const replica of state.replicas.values()) if (matches(replica)) found.push(replica);
  return found;
}
