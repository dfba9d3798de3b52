import type { EndpointView, ModelVersionView } from '@penstock/contract-commands';
import type { EndpointState, ModelVersionState } from './catalog-state.js';
import type { CatalogState } from './catalog-state.js';
import type { EndpointFilter, ModelVersionFilter } from './queries.js';

/** A model version as lists show it. */
export function toModelVersionView(state: ModelVersionState): ModelVersionView {
  const { registered } = state;
  return {
    modelVersionId: state.modelVersionId,
    modelName: state.modelName,
    version: state.version,
    engine: state.engine,
    status: state.status,
    source: registered?.source ?? state.source,
    totalBytes: registered?.artifacts.reduce((sum, artifact) => sum + artifact.bytes, 0) ?? 0,
    digest: registered?.artifacts[0]?.digest ?? state.expectedDigest,
    format: registered?.format ?? null,
    architecture: registered?.architecture ?? null,
    parameters: registered?.parameters ?? null,
    precision: registered?.precision ?? null,
    contextTokensMax: registered?.contextTokensMax ?? null,
    memoryBytes: registered === null ? null : registered.memory.weightBytes + registered.memory.overheadBytes,
    capabilities: registered?.capabilities ?? [],
    license: registered?.license ?? state.license ?? null,
    randomWeights: registered?.randomWeights ?? false,
    rejection: state.rejection,
    createdAt: new Date(state.createdAtMs).toISOString(),
  };
}

/** An endpoint as lists show it. */
export function toEndpointView(state: EndpointState): EndpointView {
  const { createdAtMs, adapters = [], ...rest } = state;
  return { ...rest, adapters: [...adapters], createdAt: new Date(createdAtMs).toISOString() };
}

/** Lists model versions out of memory, newest first. */
export function listModelVersionViews(state: CatalogState, filter: ModelVersionFilter): readonly ModelVersionView[] {
  const matching = [...state.modelVersions.values()].filter((version) => filter.modelName === undefined || version.modelName === filter.modelName);
  return newestFirst(matching).slice(0, filter.limit).map(toModelVersionView);
}

/** Lists endpoints out of memory, newest first. */
export function listEndpointViews(state: CatalogState, filter: EndpointFilter): readonly EndpointView[] {
  const matching = [...state.endpoints.values()].filter((endpoint) => filter.includeRetired || endpoint.status === 'active');
  return newestFirst(matching).slice(0, filter.limit).map(toEndpointView);
}

/** Later entries of a map are newer, which decides between equal times. */
function newestFirst<Entry extends { readonly createdAtMs: number }>(entries: readonly Entry[]): readonly Entry[] {
  return entries.toReversed().sort((a, b) => b.createdAtMs - a.createdAtMs);
}
