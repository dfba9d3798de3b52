import type { EngineKind, NodeJoinedV2 } from '@penstock/contract-events';
import type { CatalogState } from '@penstock/domain-catalog';
import type { ReplicaState } from '@penstock/domain-lifecycle';
import type { EngineStartSpec, PullRequest } from '@penstock/domain-serving';

/** Everything a start needs to know, read out of the projections once. */
export interface StartPlan {
  readonly replicaId: string;
  readonly endpointId: string;
  /** Where an interrupted start left the replica: phases never go back. */
  readonly fromPhase: StartingPhase;
  readonly pull: Pick<PullRequest, 'files' | 'sources'>;
  readonly engine: EngineKind;
  readonly spec: Omit<EngineStartSpec, 'modelPath' | 'signal' | 'onSpawned'>;
}

export type StartingPhase = 'placed' | 'pulling' | 'loading' | 'warming';

/** Undefined while the catalog does not know the endpoint or its registered model version yet: the fleet's stream may be ahead. */
export function planStart(replica: ReplicaState, fromPhase: StartingPhase, catalog: CatalogState, node: NodeJoinedV2, dataDir: string): StartPlan | undefined {
  const endpoint = catalog.endpoints.get(replica.endpointId);
  const version = catalog.modelVersions.get(replica.modelVersionId);
  if (endpoint === undefined || version?.registered === null || version?.registered === undefined) return undefined;
  const { registered } = version;
  const folder = `${dataDir}/replicas/${replica.replicaId}`;
  const devices = node.accelerators.filter((accelerator) => replica.acceleratorIds.includes(accelerator.acceleratorId)).flatMap((accelerator) => accelerator.device ?? []);
  const attached = registered.source.kind === 'attached' ? registered.source.url : null;
  return {
    replicaId: replica.replicaId,
    endpointId: replica.endpointId,
    fromPhase,
    engine: endpoint.engine,
    pull: { files: registered.artifacts, sources: [registered.source, version.source, ...version.fallbackSources] },
    spec: {
      replicaId: replica.replicaId,
      modelName: version.modelName,
      slots: endpoint.serving.slotsPerReplica,
      contextTokens: registered.contextTokensMax > 0 ? Math.min(endpoint.serving.contextTokens, registered.contextTokensMax) : endpoint.serving.contextTokens,
      options: endpoint.engineOptions,
      device: devices.length === 0 ? null : devices.join(','),
      attachedUrl: attached,
      logFile: `${folder}/engine.log`,
      stateDir: folder,
    },
  };
}
