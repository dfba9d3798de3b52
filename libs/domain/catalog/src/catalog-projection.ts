import { asCatalogueEvent, type EndpointDeployedV1 } from '@penstock/contract-events';
import type { Projection, RecordedEvent } from '@penstock/kernel';
import { evolveEndpoint, evolveModelVersion, isModelVersionEvent, isTrafficSplitEvent } from './catalog-evolve.js';
import type { CatalogState, EndpointState, ModelVersionState, TrafficSplitState } from './catalog-state.js';
import { scopedName } from './scoped-name.js';
import type { TrafficSplitEvent } from './traffic-split.js';

/** Retired endpoints beyond this many are forgotten, oldest first; the log keeps them. */
export const RETIRED_ENDPOINTS_MAX = 1_000;

interface CatalogSnapshot {
  readonly modelVersions: readonly ModelVersionState[];
  readonly endpoints: readonly EndpointState[];
  readonly names: readonly (readonly [string, string])[];
  readonly generations: readonly (readonly [string, number])[];
  readonly retiredEndpointIds: readonly string[];
  readonly splits: readonly TrafficSplitState[];
}

/** Model versions, endpoints and traffic splits, in memory. */
export const catalogProjection: Projection<CatalogState> = {
  name: 'catalog',
  version: 5,
  streams: ['EV_REGISTRY'],
  initialState: () => ({ modelVersions: new Map(), endpoints: new Map(), endpointIdByName: new Map(), generationByName: new Map(), retiredEndpointIds: [], splits: new Map(), splitIdByName: new Map() }),
  apply,
  snapshot: (state): CatalogSnapshot => ({
    modelVersions: [...state.modelVersions.values()],
    endpoints: [...state.endpoints.values()],
    names: [...state.endpointIdByName],
    generations: [...state.generationByName],
    retiredEndpointIds: [...state.retiredEndpointIds],
    splits: [...state.splits.values()],
  }),
  restore(snapshot) {
    const stored = snapshot as CatalogSnapshot;
    return {
      modelVersions: new Map(stored.modelVersions.map((version) => [version.modelVersionId, version])),
      endpoints: new Map(stored.endpoints.map((endpoint) => [endpoint.endpointId, endpoint])),
      endpointIdByName: new Map(stored.names),
      generationByName: new Map(stored.generations),
      retiredEndpointIds: [...stored.retiredEndpointIds],
      splits: new Map(stored.splits.map((split) => [split.splitId, split])),
      splitIdByName: new Map(stored.splits.map((split) => [scopedName(split.name, split.organisationId), split.splitId])),
    };
  },
};

function apply(state: CatalogState, recorded: RecordedEvent): CatalogState {
  const event = asCatalogueEvent(recorded);
  const atMs = Date.parse(recorded.time);
  if (isModelVersionEvent(event)) {
    const version = evolveModelVersion(state.modelVersions.get(event.data.modelVersionId), event, atMs);
    if (version !== undefined) state.modelVersions.set(version.modelVersionId, version);
  } else if (event.type === 'endpoint.deployed.v1') {
    deploy(state, event.data, atMs);
  } else if (event.type === 'endpoint.placement-set.v1' || event.type === 'endpoint.adapters-set.v1') {
    const endpoint = evolveEndpoint(state.endpoints.get(event.data.endpointId), event, atMs);
    if (endpoint !== undefined) state.endpoints.set(endpoint.endpointId, endpoint);
  } else if (event.type === 'endpoint.retired.v1') {
    retire(state, event.data.endpointId);
  } else if (isTrafficSplitEvent(event)) {
    split(state, event, atMs);
  }
  return state;
}

function split(state: CatalogState, event: TrafficSplitEvent, atMs: number): void {
  const { splitId } = event.data;
  const known = state.splits.get(splitId);
  if (known !== undefined) state.splitIdByName.delete(scopedName(known.name, known.organisationId));
  state.splits.delete(splitId);
  if (event.type === 'traffic-split.removed.v1') return;
  state.splits.set(splitId, { ...event.data, setAtMs: atMs });
  state.splitIdByName.set(scopedName(event.data.name, event.data.organisationId), splitId);
}

function deploy(state: CatalogState, data: EndpointDeployedV1, atMs: number): void {
  if (state.endpoints.has(data.endpointId)) return;
  const name = scopedName(data.name, data.organisationId);
  state.endpoints.set(data.endpointId, { ...data, rules: null, status: 'active', createdAtMs: atMs });
  state.endpointIdByName.set(name, data.endpointId);
  state.generationByName.set(name, (state.generationByName.get(name) ?? 0) + 1);
}

function retire(state: CatalogState, endpointId: string): void {
  const endpoint = state.endpoints.get(endpointId);
  if (endpoint === undefined || endpoint.status === 'retired') return;
  state.endpoints.set(endpointId, { ...endpoint, status: 'retired' });
  const name = scopedName(endpoint.name, endpoint.organisationId);
  if (state.endpointIdByName.get(name) === endpointId) state.endpointIdByName.delete(name);
  state.retiredEndpointIds.push(endpointId);
  while (state.retiredEndpointIds.length > RETIRED_ENDPOINTS_MAX) state.endpoints.delete(state.retiredEndpointIds.shift() as string);
}
