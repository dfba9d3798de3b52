import type {
  EngineKind, EventOf, ReplicaFailedV1, ReplicaPlacedV2,
  replicaAdvancedV1, replicaDrainStartedV1, replicaFailedV1, replicaPlacedV2, replicaReadyV1, replicaStoppedV1,
} from '@penstock/contract-events';
import { isEnded, mayAdvance, isStarting, type LivingPhase, type ReplicaPhase } from './replica-phase.js';

export type ReplicaEvent =
  | EventOf<typeof replicaPlacedV2>
  | EventOf<typeof replicaAdvancedV1>
  | EventOf<typeof replicaReadyV1>
  | EventOf<typeof replicaDrainStartedV1>
  | EventOf<typeof replicaStoppedV1>
  | EventOf<typeof replicaFailedV1>;

export type ReplicaFailureCode = ReplicaFailedV1['code'];

export interface ReplicaMember {
  readonly nodeId: string;
  readonly acceleratorIds: readonly string[];
}

/** What the events of one replica say, without times. */
export interface ReplicaFacts {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly modelVersionId: string;
  /** Of the member that leads: where its engine answers. */
  readonly nodeId: string;
  readonly acceleratorIds: readonly string[];
  /** Every node of it with the accelerators there, the leading one first; several are a gang. */
  readonly members: readonly ReplicaMember[];
  /** Over all accelerators of all members. */
  readonly reservedBytes: number;
  /** Set aside of each accelerator, in thousandths. */
  readonly computeMilli: number;
  /** Set aside on each member. */
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  readonly mig: ReplicaPlacedV2['mig'];
  readonly option: ReplicaPlacedV2['option'];
  /** The replica that drains once this one is ready; null for one that is added. */
  readonly replaces: string | null;
  readonly placementReason: ReplicaPlacedV2['reason'];
  readonly phase: ReplicaPhase;
  /** Where gateways reach the engine; null until it was ready. */
  readonly url: string | null;
  readonly engine: EngineKind | null;
  readonly servedModel: string | null;
  readonly slots: number | null;
  readonly contextTokens: number | null;
  /** Why it drains, stopped or failed. */
  readonly reason: string | null;
  readonly failureCode: ReplicaFailureCode | null;
  /** The phase it failed in. */
  readonly failedInPhase: LivingPhase | null;
}

/**
 * The one rule of how a replica changes, for the decider and for the projection. Total: an event that does not fit
 * changes nothing, so that a replay never stops at it.
 */
export function evolveReplica<Facts extends ReplicaFacts>(facts: Facts | null, event: ReplicaEvent, start: (placed: ReplicaFacts) => Facts): Facts | null {
  if (event.type === 'replica.placed.v2') return facts ?? start(placedFacts(event.data));
  if (facts === null || isEnded(facts.phase)) return facts;
  switch (event.type) {
    case 'replica.advanced.v1':
      return mayAdvance(facts.phase, event.data.phase) ? { ...facts, phase: event.data.phase } : facts;
    case 'replica.ready.v1': {
      if (!isStarting(facts.phase)) return facts;
      const { url, engine, servedModel, slots, contextTokens } = event.data;
      return { ...facts, phase: 'ready', url, engine, servedModel, slots, contextTokens };
    }
    case 'replica.drain-started.v1':
      return facts.phase === 'draining' ? facts : { ...facts, phase: 'draining', reason: event.data.reason };
    case 'replica.stopped.v1':
      return { ...facts, phase: 'stopped', reason: event.data.reason };
    case 'replica.failed.v1':
      return { ...facts, phase: 'failed', reason: event.data.reason, failureCode: event.data.code, failedInPhase: event.data.phase };
    default:
      return facts;
  }
}

function placedFacts(data: ReplicaPlacedV2): ReplicaFacts {
  const { reason, ...placed } = data;
  const [leader] = placed.members;
  return {
    ...placed, nodeId: leader?.nodeId ?? '', acceleratorIds: leader?.acceleratorIds ?? [], placementReason: reason, phase: 'placed', url: null, engine: null, servedModel: null, slots: null, contextTokens: null,
    reason: null, failureCode: null, failedInPhase: null,
  };
}
