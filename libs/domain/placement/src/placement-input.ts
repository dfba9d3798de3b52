import type { EngineKind } from '@penstock/contract-events';

/** A device that replicas are put on. `type` is `cpu` or a GPU type; slices of a GPU will be devices of their own. */
export interface PlacementAccelerator {
  readonly acceleratorId: string;
  readonly type: string;
  readonly memoryBytes: number;
  /** One replica holds it alone, however little memory it needs. */
  readonly isExclusive?: boolean | undefined;
}

/** A node that is up. Lost nodes are left out by the caller. */
export interface PlacementNode {
  readonly nodeId: string;
  readonly hostname: string;
  readonly accelerators: readonly PlacementAccelerator[];
  readonly engines: readonly { readonly kind: EngineKind }[];
}

/** Memory that somebody holds: a replica that did not end, or one that was decided and is not placed yet. */
export interface Reservation {
  readonly nodeId: string;
  /** The bytes are spread evenly over these. */
  readonly acceleratorIds: readonly string[];
  readonly reservedBytes: number;
}

/** A replica of the endpoint that neither ended nor drains. */
export interface PlacedReplica {
  readonly replicaId: string;
  readonly nodeId: string;
  readonly isReady: boolean;
  readonly placedAtMs: number;
  /** Requests it works on, where known. */
  readonly running: number | null;
}

export interface PlacementDemand {
  readonly endpointId: string;
  readonly modelVersionId: string;
  readonly engine: EngineKind;
  /** null lets the planner choose; it takes a GPU before the CPU. */
  readonly acceleratorType: string | null;
  /** The replica's memory is spread evenly over this many accelerators of one node and one type. */
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
  readonly wanted: number;
  readonly replicas: readonly PlacedReplica[];
  /** Decided already, `replica.placed` has not followed yet: they count as replicas, and cannot be drained. */
  readonly pendingNodeIds: readonly string[];
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
  readonly reservations: readonly Reservation[];
  readonly demands: readonly PlacementDemand[];
  readonly nowMs: number;
}
