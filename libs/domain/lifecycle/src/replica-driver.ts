import type { ArtifactSource, EndpointAdapter, EngineKind, NodeJoinedV2 } from '@penstock/contract-events';
import type { GeometryDriver } from './geometry-driver.js';
import type { ReplicaFailureCode, ReplicaMember } from './replica-facts.js';

/** Who makes placements happen: an agent on each node, a Kubernetes cluster, or a fleet that is only imagined. */
export type ReplicaDriverKind = 'process' | 'kubernetes' | 'simulated';

/** A node that a driver stands for. */
export interface DrivenNode {
  /** What it offers now, as it is said to the fleet. */
  readonly report: NodeJoinedV2;
  readonly isReady: boolean;
  /** Why it is not ready; null while it is. */
  readonly reason: string | null;
  /** When its owner takes it back, ISO 8601; left out while nothing was announced. */
  readonly reclaimAt?: string | undefined;
}

/** Everything a driver needs to make one placed replica exist. */
export interface ReplicaAssignment {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly modelVersionId: string;
  /** Of the member that leads. */
  readonly nodeId: string;
  readonly acceleratorIds: readonly string[];
  /** Every node with the accelerators there, the leading one first; several are a gang, which starts and ends together. */
  readonly members: readonly ReplicaMember[];
  /** The MIG instance that it runs in; null without. */
  readonly mig: { readonly profile: string; readonly start: number } | null;
  /** Taints of its nodes that it may stand on. */
  readonly tolerations: readonly string[];
  /** Bytes set aside for it, over all its accelerators. */
  readonly reservedBytes: number;
  readonly engine: EngineKind;
  /** The name that the engine is to know the model by. */
  readonly modelName: string;
  readonly source: ArtifactSource;
  readonly slots: number;
  /** Tokens of prompt and answer together, for each slot. */
  readonly contextTokens: number;
  readonly engineOptions: Readonly<Record<string, string | number | boolean>>;
  /** LoRA adapters that its engine is to serve; left out where there are none. */
  readonly adapters?: readonly EndpointAdapter[] | undefined;
}

/**
 * How far what runs for a replica has come: `waiting` has no machine yet, `serving` says that its engine accepts requests,
 * `ending` was told to stop by anybody, `ended` runs no more.
 */
export type ObservedPhase = 'waiting' | 'pulling' | 'loading' | 'serving' | 'ending' | 'ended';

export interface ReplicaObservation {
  readonly replicaId: string;
  readonly phase: ObservedPhase;
  /** Where gateways reach the engine; null until that is known. */
  readonly url: string | null;
  /** Why it cannot go on by itself, such as an image that nobody has; it may still clear up. */
  readonly blocked: { readonly code: ReplicaFailureCode; readonly reason: string } | null;
  /** How it ended, and whether somebody asked for it; null unless `ended`. */
  readonly end: { readonly wasAsked: boolean; readonly reason: string } | null;
  /** How far its pull is, where the driver sees that: a pull that moves is not taken for one that hangs. */
  readonly pull?: { readonly completedBytes: number; readonly totalBytes: number } | undefined;
}

/** How many replicas of an endpoint have to stay whatever an operator drains. */
export interface DisruptionBudget {
  readonly endpointId: string;
  readonly availableMin: number;
}

/** `held` says that a disruption budget does not allow it now: ask again later. */
export type RetireOutcome = 'ending' | 'held';

/**
 * Acts on placements. Everything is level-triggered: whoever drives compares what `replicas()` shows with what the log wants,
 * and may ask for the same step again after a crash.
 */
export interface ReplicaDriver {
  readonly kind: ReplicaDriverKind;
  /** Left out where somebody else lays out the GPUs. */
  readonly mig?: GeometryDriver | undefined;
  /** True for nodes that this driver stands for, whether they still exist or not. */
  owns(nodeId: string): boolean;
  /** False until nodes and replicas have been read once: until then nothing counts as missing. */
  isSynced(): boolean;
  nodes(): readonly DrivenNode[];
  /** Everything that exists of replicas, wanted or not. */
  replicas(): readonly ReplicaObservation[];
  /** Makes it exist; nothing happens when it does already. Throws {@link ReplicaAssignmentError} when that can never work. */
  start(assignment: ReplicaAssignment): Promise<void>;
  /** Asks a drained replica to end, within disruption budgets. */
  retire(replicaId: string): Promise<RetireOutcome>;
  /** Ends whatever exists of a replica that nobody wants any more. */
  remove(replicaId: string): Promise<void>;
  /** Makes these the only disruption budgets. */
  protect(budgets: readonly DisruptionBudget[]): Promise<void>;
  /** Called after each change of nodes or replicas. Returns how to stop listening. */
  onChange(listener: () => void): () => void;
  /** What it counted since its start, by name, for metrics. */
  counters(): Readonly<Record<string, number>>;
  close(): Promise<void>;
}

/** This replica can never be started by this driver as it was placed. */
export class ReplicaAssignmentError extends Error {
  override readonly name = 'ReplicaAssignmentError';
  constructor(readonly code: ReplicaFailureCode, message: string) {
    super(message);
  }
}

/** Devices that one replica holds alone are reported with one of these schemes before their name. */
const EXCLUSIVE_SCHEMES = ['k8s:', 'dra:'] as const;

/** True for a device that Kubernetes hands to one Pod at a time: memory that its replica leaves free is nobody's. */
export function isExclusiveDevice(device: string | null): boolean {
  return device !== null && EXCLUSIVE_SCHEMES.some((scheme) => device.startsWith(scheme));
}
