import type { CatalogueEvent } from '@penstock/contract-events';
import type { EndpointState, ModelVersionState } from './catalog-state.js';
import type { EndpointEvent } from './endpoint.js';
import type { ModelVersionEvent } from './model-version.js';
import type { TrafficSplitEvent } from './traffic-split.js';

export function isModelVersionEvent<Event extends CatalogueEvent>(event: Event): event is Event & ModelVersionEvent {
  return event.type === 'model-version.submitted.v1' || event.type === 'model-version.registered.v1' || event.type === 'model-version.rejected.v1' || event.type === 'model-version.tensors-read.v1';
}

export function isEndpointEvent<Event extends CatalogueEvent>(event: Event): event is Event & EndpointEvent {
  return event.type === 'endpoint.deployed.v1' || event.type === 'endpoint.placement-set.v1' || event.type === 'endpoint.adapters-set.v1' || event.type === 'endpoint.retired.v1';
}

export function isTrafficSplitEvent<Event extends CatalogueEvent>(event: Event): event is Event & TrafficSplitEvent {
  return event.type === 'traffic-split.set.v1' || event.type === 'traffic-split.removed.v1';
}

/** Folds one event of a model version, for the projection in memory and for the table. Total: what does not fit changes nothing. */
export function evolveModelVersion(state: ModelVersionState | undefined, event: ModelVersionEvent, atMs: number): ModelVersionState | undefined {
  if (event.type === 'model-version.submitted.v1') return { ...event.data, status: 'submitted', registered: null, tensors: null, rejection: null, createdAtMs: atMs };
  if (event.type === 'model-version.tensors-read.v1') return state?.status === 'registered' ? { ...state, tensors: { inputs: event.data.inputs, outputs: event.data.outputs } } : state;
  if (state?.status !== 'submitted') return state;
  return event.type === 'model-version.registered.v1'
    ? { ...state, status: 'registered', registered: event.data }
    : { ...state, status: 'rejected', rejection: event.data.reason };
}

/** Folds one event of an endpoint, for the projection in memory and for the table. Total: what does not fit changes nothing. */
export function evolveEndpoint(state: EndpointState | undefined, event: EndpointEvent, atMs: number): EndpointState | undefined {
  if (event.type === 'endpoint.deployed.v1') return state ?? { ...event.data, rules: null, status: 'active', createdAtMs: atMs };
  if (state === undefined) return undefined;
  if (event.type === 'endpoint.placement-set.v1') return { ...state, rules: event.data.rules };
  if (event.type === 'endpoint.adapters-set.v1') return { ...state, adapters: event.data.adapters };
  return { ...state, status: 'retired' };
}
