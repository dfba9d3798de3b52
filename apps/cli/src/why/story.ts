import type { EndpointDeployedV1, ModelVersionRegisteredV1, PlacementRefusedV2, ReplicaPlacedV2, WantedReplicasChangedV1 } from '@penstock/contract-events';
import { inOrder, type StoryEvent } from './event-reader.js';
import { sayEvent } from './say-event.js';

/** What the scheduler was given. */
export interface StoryInputs {
  readonly name: string;
  readonly engine: EndpointDeployedV1['engine'];
  readonly hardware: EndpointDeployedV1['hardware'];
  readonly scaling: EndpointDeployedV1['scaling'];
  readonly serving: EndpointDeployedV1['serving'];
  /** null until the model version is registered. */
  readonly memory: ModelVersionRegisteredV1['memory'] | null;
}

export interface TimelineEntry {
  readonly time: string;
  readonly type: string;
  readonly id: string;
  readonly source: string;
  readonly says: string;
}

type At<Data> = Data & { readonly at: string; readonly eventId: string };

export interface ReplicaStory {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly inputs: StoryInputs | null;
  readonly placement: At<ReplicaPlacedV2>;
  /** The scaling decision that the placement followed from. */
  readonly decision: At<WantedReplicasChangedV1> | null;
  readonly history: readonly TimelineEntry[];
  /** Everything that carries the correlation id of the placement, its own history left out. */
  readonly correlated: readonly TimelineEntry[];
}

export interface EndpointStory {
  readonly endpointId: string;
  readonly inputs: StoryInputs | null;
  /** The newest decision on the number of replicas, and those before it, newest first. */
  readonly decisions: readonly At<WantedReplicasChangedV1>[];
  /** Why it has fewer replicas than wanted; null when the newest word is a placement. */
  readonly refusal: At<PlacementRefusedV2> | null;
  readonly placements: readonly At<ReplicaPlacedV2>[];
  readonly history: readonly TimelineEntry[];
}

export interface Histories {
  readonly endpoint: readonly StoryEvent[];
  readonly modelVersion: readonly StoryEvent[];
  readonly scaling: readonly StoryEvent[];
  readonly refusals: readonly StoryEvent[];
  /** Promises of the endpoint: made, refused, released. */
  readonly reservations: readonly StoryEvent[];
  /** Of one replica, or of all replicas of the endpoint. */
  readonly replicas: readonly StoryEvent[];
  readonly circuits: readonly StoryEvent[];
}

/** Undefined when the replica was never placed. Pure. */
export function tellReplica(replicaId: string, histories: Histories): ReplicaStory | undefined {
  const placed = histories.replicas.find((event) => event.type === 'replica.placed.v2');
  if (placed?.type !== 'replica.placed.v2') return undefined;
  const own = inOrder([...histories.replicas, ...histories.circuits]);
  const others = inOrder([...histories.endpoint, ...histories.modelVersion, ...histories.scaling, ...histories.refusals, ...histories.reservations]);
  const cause = histories.scaling.find((event) => event.id === placed.causation_id);
  return {
    replicaId,
    endpointId: placed.data.endpointId,
    inputs: inputsOf(histories),
    placement: { ...placed.data, at: placed.time, eventId: placed.id },
    decision: cause?.type === 'wanted-replicas.changed.v1' ? { ...cause.data, at: cause.time, eventId: cause.id } : null,
    history: own.map(toEntry),
    correlated: others.filter((event) => event.correlation_id === placed.correlation_id || event.id === placed.causation_id).map(toEntry),
  };
}

/** Undefined when the endpoint was never deployed. Pure. */
export function tellEndpoint(endpointId: string, histories: Histories): EndpointStory | undefined {
  if (histories.endpoint.length === 0) return undefined;
  const at = <Data>(event: StoryEvent, data: Data): At<Data> => ({ ...data, at: event.time, eventId: event.id });
  const placements = inOrder(histories.replicas).flatMap((event) => (event.type === 'replica.placed.v2' ? [at(event, event.data)] : []));
  const refusals = inOrder(histories.refusals).flatMap((event) => (event.type === 'placement.refused.v2' ? [at(event, event.data)] : []));
  const refusal = refusals.at(-1);
  const newestPlacement = placements.at(-1);
  return {
    endpointId,
    inputs: inputsOf(histories),
    decisions: inOrder(histories.scaling).flatMap((event) => (event.type === 'wanted-replicas.changed.v1' ? [at(event, event.data)] : [])).reverse(),
    refusal: refusal === undefined || (newestPlacement !== undefined && newestPlacement.at > refusal.at) ? null : refusal,
    placements,
    history: inOrder([...histories.endpoint, ...histories.modelVersion, ...histories.scaling, ...histories.refusals, ...histories.reservations, ...histories.replicas, ...histories.circuits]).map(toEntry),
  };
}

function inputsOf({ endpoint, modelVersion }: Histories): StoryInputs | null {
  const deployed = endpoint.findLast((event) => event.type === 'endpoint.deployed.v1');
  if (deployed?.type !== 'endpoint.deployed.v1') return null;
  const registered = modelVersion.findLast((event) => event.type === 'model-version.registered.v1');
  const { name, engine, hardware, scaling, serving } = deployed.data;
  return { name, engine, hardware, scaling, serving, memory: registered?.type === 'model-version.registered.v1' ? registered.data.memory : null };
}

function toEntry(event: StoryEvent): TimelineEntry {
  return { time: event.time, type: event.type, id: event.id, source: event.source, says: sayEvent(event) };
}
