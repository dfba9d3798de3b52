import type { EngineKind, PlacementRules } from '@penstock/contract-events';
import type { MigInstance } from '../mig/mig-geometry.js';

/** A device that replicas are put on. `type` is `cpu` or a GPU type as its node reports it. */
export interface PlacementAccelerator {
  readonly acceleratorId: string;
  readonly type: string;
  /** What engines find of its memory. */
  readonly usableBytes: number;
  /** Accelerators of the node with the same name here reach each other by a fast link; null for one that reaches none. */
  readonly islandId: string | null;
  /** One replica holds it alone, however little memory it needs. */
  readonly isExclusive: boolean;
  /** The MIG instances that exist; null where it is not partitioned. */
  readonly migInstances: readonly MigInstance[] | null;
}

/** A node that is up. Lost nodes are left out by the caller. */
export interface PlacementNode {
  readonly nodeId: string;
  readonly hostname: string;
  readonly accelerators: readonly PlacementAccelerator[];
  readonly engines: readonly { readonly kind: EngineKind }[];
  readonly cpuMilli: number;
  /** 0 where the node does not say; then it is not counted. */
  readonly hostMemoryBytes: number;
  /** What fails together with it. */
  readonly failureDomain: string;
  readonly taints: readonly string[];
  readonly market: 'on_demand' | 'spot';
  /** What the node says an accelerator costs; null leaves it to the catalogue. */
  readonly dollarsPerGpuHour: number | null;
  /** Why it takes nothing new; null while it is open. */
  readonly cordonReason: string | null;
  /** Why it is to become empty; null while it is not. */
  readonly drainReason: string | null;
  /** When its owner takes it back; null while nothing was announced. */
  readonly reclaimAtMs: number | null;
}

/** Nodes with the accelerators on each that one replica holds. */
export interface HeldMember {
  readonly nodeId: string;
  readonly acceleratorIds: readonly string[];
}

/** What somebody holds: a replica that did not end, or one that was decided and is not placed yet. */
export interface Holding {
  readonly replicaId: string;
  readonly members: readonly HeldMember[];
  /** Spread evenly over all accelerators of all members. */
  readonly reservedBytes: number;
  /** Of each accelerator, in thousandths. */
  readonly computeMilli: number;
  /** Of each member. */
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  readonly mig: MigInstance | null;
  /** It drains: what it holds comes free by itself. */
  readonly isLeaving?: boolean;
}

/** A replica of the endpoint that neither ended nor drains. */
export interface PlacedReplica {
  readonly replicaId: string;
  /** Of all its members, the leading one first. */
  readonly nodeIds: readonly string[];
  readonly isReady: boolean;
  readonly placedAtMs: number;
  /** Requests it works on, where known. */
  readonly running: number | null;
  /** The replica in whose place it comes; null for one that was added. */
  readonly replaces: string | null;
}

/** A replica that was decided, and `replica.placed` has not followed yet: it counts, and cannot be drained. */
export interface PendingReplica {
  readonly replicaId: string;
  readonly nodeIds: readonly string[];
  readonly replaces: string | null;
}

export interface PlacementDemand {
  readonly endpointId: string;
  readonly modelVersionId: string;
  readonly engine: EngineKind;
  /** null lets the planner choose; it takes a GPU before the CPU. */
  readonly acceleratorType: string | null;
  /** The replica's memory is spread evenly over this many accelerators of one type, in one island of each of its nodes. */
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
  /** Of the weights, where known. */
  readonly precision: string | null;
  /** What its profile lacks, so that nothing can be planned on it; empty when it is whole. */
  readonly profileHoles: readonly string[];
  readonly rules: PlacementRules;
  /** Demands with more of it are placed first. */
  readonly priority: number;
  readonly wanted: number;
  readonly replicas: readonly PlacedReplica[];
  readonly pending: readonly PendingReplica[];
  /** Nodes that are likely to have the artifacts in their cache. */
  readonly warmNodeIds: ReadonlySet<string>;
  /** Failed starts by node since the endpoint last was stable. */
  readonly failuresByNode: ReadonlyMap<string, number>;
  /** Set while replacements have to wait after failures. */
  readonly backoff: StartBackoff | null;
  /** Why replicas above the wanted number are to go. */
  readonly drainReason: string;
}

export interface StartBackoff {
  readonly failuresInRow: number;
  readonly retryAtMs: number;
  readonly lastFailure: string;
}

export interface PlacementInput {
  readonly nodes: readonly PlacementNode[];
  readonly holdings: readonly Holding[];
  readonly demands: readonly PlacementDemand[];
  /** By endpoint: what was promised, and who shares the rest. An endpoint without an entry has {@link NO_STANDING}. */
  readonly standings?: ReadonlyMap<string, EndpointStanding>;
  readonly nowMs: number;
  /** How long a replica takes from its placement to being ready, in milliseconds: what a move costs follows from it. */
  readonly typicalStartMs: number;
  /** Replicas that one plan adds at most. */
  readonly placementsMax: number;
}

/** What an endpoint was promised, and whose share its other replicas count to. */
export interface EndpointStanding {
  readonly tenantId: string;
  /** Of the tenant, in the sharing of what is not promised. */
  readonly weight: number;
  /** Of replicas that were not promised: lower ones are preempted first. */
  readonly priority: number;
  /** Replicas that it never falls under, and how urgent they are. */
  readonly floor: number;
  readonly floorPriority: number;
}

/** All endpoints are one tenant's, and nothing is promised. */
export const NO_STANDING: EndpointStanding = { tenantId: '', weight: 1, priority: 0, floor: 0, floorPriority: 0 };

/** Rules of an endpoint that sets none: one node, any market but spot, no share set aside. */
export const NO_RULES: PlacementRules = {
  nodes: 1, computeMilli: null, migProfile: null, cpuMilli: null, hostMemoryBytes: null, allowsSpot: false, pinnedNodeIds: null, tolerations: [],
};
