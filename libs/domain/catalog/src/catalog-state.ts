import type { EndpointDeployedV1, ModelVersionRegisteredV1, ModelVersionSubmittedV1, PlacementRules, TensorSpec } from '@penstock/contract-events';
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
  readonly status: 'active' | 'retired';
  readonly createdAtMs: number;
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
}

/** The active endpoint that `organisationId` calls by `name`: its own one before one that is for everybody. */
export function findEndpointByName(state: CatalogState, name: string, organisationId: string | null): EndpointState | undefined {
  const own = organisationId === null ? undefined : state.endpointIdByName.get(scopedName(name, organisationId));
  const endpointId = own ?? state.endpointIdByName.get(name);
  return endpointId === undefined ? undefined : state.endpoints.get(endpointId);
}

/** Active endpoints that `organisationId` may call, by name; its own ones hide shared ones of the same name. */
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
  return [...visible.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
