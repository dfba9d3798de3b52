import type { CatalogState } from '@penstock/domain-catalog';
import type { ReplicaAssignment, ReplicaState } from '@penstock/domain-lifecycle';

/** Undefined while the catalog does not know the endpoint or its registered model version yet: the fleet's stream may be ahead. */
export function planAssignment(replica: ReplicaState, catalog: CatalogState): ReplicaAssignment | undefined {
  const endpoint = catalog.endpoints.get(replica.endpointId);
  const version = catalog.modelVersions.get(replica.modelVersionId);
  if (endpoint === undefined || version?.registered === null || version?.registered === undefined) return undefined;
  const { registered } = version;
  const { replicaId, endpointId, modelVersionId, nodeId, acceleratorIds, members, mig, reservedBytes } = replica;
  return {
    replicaId, endpointId, modelVersionId, nodeId, acceleratorIds, members, mig, reservedBytes,
    tolerations: endpoint.rules?.tolerations ?? [],
    engine: endpoint.engine,
    modelName: version.modelName,
    source: registered.source,
    slots: endpoint.serving.slotsPerReplica,
    contextTokens: registered.contextTokensMax > 0 ? Math.min(endpoint.serving.contextTokens, registered.contextTokensMax) : endpoint.serving.contextTokens,
    engineOptions: endpoint.engineOptions,
    ...(endpoint.adapters === undefined || endpoint.adapters.length === 0 ? {} : { adapters: endpoint.adapters }),
  };
}
