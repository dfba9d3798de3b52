import type { EndpointAdapter, EndpointDeployedV1, ModelVersionRegisteredV1, ModelVersionSubmittedV1, PlacementRules, TensorSpec, TrafficSplitSetV1 } from '@penstock/contract-events';
import { scopedName } from './scoped-name.js';

export interface ModelVersionState extends ModelVersionSubmittedV1 {
  readonly status: 'submitted' | 'registered' | 'rejected';
  readonly registered: ModelVersionRegisteredV1 | null;
  /** What it takes and gives, where its header says so; null for a model of text, or of an engine that was attached. */
  readonly tensors: { readonly inputs: readonly TensorSpec[]; readonly outputs: readonly TensorSpec[] } | null;
  /** Why it was rejected. */
  readonly rejection: string | null;
  /** When it was submitted last. */
  readonly createdAtMs: number;
}

export interface EndpointState extends EndpointDeployedV1 {
  /** Where its replicas may stand and what each takes; null where nothing was said. */
  readonly rules: PlacementRules | null;
  /** What requests may name behind its name and a colon; left out where nothing was said. */
  readonly adapters?: readonly EndpointAdapter[] | undefined;
  readonly status: 'active' | 'retired';
  readonly createdAtMs: number;
}

/** A name that several endpoints share by weight. */
export interface TrafficSplitState extends TrafficSplitSetV1 {
  readonly setAtMs: number;
}

/** What every service knows about model versions and endpoints. */
export interface CatalogState {
  readonly modelVersions: Map<string, ModelVersionState>;
  /** Active endpoints, and the newest that were retired. */
  readonly endpoints: Map<string, EndpointState>;
  /** Active endpoints only, by `scopedName`: the plain name where an endpoint is for every organisation. */
  readonly endpointIdByName: Map<string, string>;
  /** How often a scoped name was deployed. */
  readonly generationByName: Map<string, number>;
  /** Retired endpoints, the one retired longest first. */
  readonly retiredEndpointIds: string[];
  readonly splits: Map<string, TrafficSplitState>;
  /** By `scopedName`, as endpoints. */
  readonly splitIdByName: Map<string, string>;
}

/**
 * The active endpoint that `organisationId` calls by `name`: its own one before one that is for everybody. A name that only a traffic
 * split has stands for the largest of its targets; which one a request goes to is for `chooseEndpoint` to say.
 */
export function findEndpointByName(state: CatalogState, name: string, organisationId: string | null): EndpointState | undefined {
  const own = organisationId === null ? undefined : idOf(state, scopedName(name, organisationId));
  const endpointId = own ?? idOf(state, name);
  const endpoint = endpointId === undefined ? undefined : state.endpoints.get(endpointId);
  return endpoint === undefined || endpoint.name === name ? endpoint : { ...endpoint, name };
}

function idOf(state: CatalogState, scoped: string): string | undefined {
  const endpointId = state.endpointIdByName.get(scoped);
  if (endpointId !== undefined || state.splits.size === 0) return endpointId;
  return largestTarget(state, state.splits.get(state.splitIdByName.get(scoped) ?? ''));
}

function largestTarget(state: CatalogState, split: TrafficSplitState | undefined): string | undefined {
  let largest: TrafficSplitState['targets'][number] | undefined;
  for (const target of split?.targets ?? []) {
    if (target.weight > (largest?.weight ?? 0) && state.endpoints.get(target.endpointId)?.status === 'active') largest = target;
  }
  return largest?.endpointId;
}

/** What `organisationId` may call, by name: active endpoints, and names of traffic splits; its own ones hide shared ones of the same name. */
export function endpointsVisibleTo(state: CatalogState, organisationId: string | null): readonly EndpointState[] {
  const visible = new Map<string, EndpointState>();
  for (const endpointId of state.endpointIdByName.values()) {
    const endpoint = state.endpoints.get(endpointId);
    if (endpoint === undefined) continue;
    if (endpoint.organisationId === null) {
      if (!visible.has(endpoint.name)) visible.set(endpoint.name, endpoint);
    } else if (endpoint.organisationId === organisationId) {
      visible.set(endpoint.name, endpoint);
    }
  }
  for (const { name, organisationId: owner } of state.splits.values()) {
    if (visible.has(name) || (owner !== null && owner !== organisationId)) continue;
    const endpoint = findEndpointByName(state, name, organisationId);
    if (endpoint !== undefined) visible.set(name, endpoint);
  }
  return [...visible.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The split that `organisationId` meets under a name; an endpoint of its own hides a split for everybody. */
export function findSplit(state: CatalogState, name: string, organisationId: string | null): TrafficSplitState | undefined {
  if (organisationId !== null) {
    const own = scopedName(name, organisationId);
    const splitId = state.splitIdByName.get(own);
    if (splitId !== undefined) return state.splits.get(splitId);
    if (state.endpointIdByName.has(own)) return undefined;
  }
  const shared = state.splitIdByName.get(name);
  return shared === undefined ? undefined : state.splits.get(shared);
}

/** Every endpoint that a request for a name may go to, called by that name: the targets of its split that take a share, else the one of that name. */
export function endpointsOfName(state: CatalogState, name: string, organisationId: string | null): readonly EndpointState[] {
  const split = state.splits.size === 0 ? undefined : findSplit(state, name, organisationId);
  const targets = (split?.targets ?? []).flatMap(({ endpointId, weight }) => {
    const endpoint = weight === 0 ? undefined : state.endpoints.get(endpointId);
    return endpoint?.status === 'active' ? [endpoint.name === name ? endpoint : { ...endpoint, name }] : [];
  });
  if (targets.length > 0) return targets;
  const named = findEndpointByName(state, name, organisationId);
  return named === undefined ? [] : [named];
}
