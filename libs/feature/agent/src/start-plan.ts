import type { EngineKind, NodeJoinedV2, ReplicaProfileMeasuredV1 } from '@penstock/contract-events';
import type { CatalogState } from '@penstock/domain-catalog';
import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import type { EngineStartSpec, PullRequest } from '@penstock/domain-serving';

/** Everything a start needs to know, read out of the projections once. */
export interface StartPlan {
  readonly replicaId: string;
  readonly endpointId: string;
  /** Where an interrupted start left the replica: phases never go back. */
  readonly fromPhase: StartingPhase;
  readonly pull: Pick<PullRequest, 'files' | 'sources'>;
  readonly engine: EngineKind;
  /** What a measurement of this start is about. */
  readonly measures: Pick<ReplicaProfileMeasuredV1, 'modelVersionId' | 'precision' | 'device' | 'weightBytes'>;
  readonly spec: Omit<EngineStartSpec, 'modelPath' | 'signal' | 'onSpawned'>;
}

export type StartingPhase = 'placed' | 'pulling' | 'loading' | 'warming';

/** The machine, and the MIG instances of its GPUs as they are now. */
export interface StartHardware {
  readonly node: NodeJoinedV2;
  readonly geometries: FleetState['geometries'];
}

/**
 * Undefined while the catalog does not know the endpoint or its registered model version yet, since the fleet's stream may be
 * ahead, and while the MIG instance of the replica is not there.
 */
export function planStart(replica: ReplicaState, fromPhase: StartingPhase, catalog: CatalogState, hardware: StartHardware, dataDir: string): StartPlan | undefined {
  const endpoint = catalog.endpoints.get(replica.endpointId);
  const version = catalog.modelVersions.get(replica.modelVersionId);
  if (endpoint === undefined || version?.registered === null || version?.registered === undefined) return undefined;
  const { registered } = version;
  const folder = `${dataDir}/replicas/${replica.replicaId}`;
  const devices = devicesOf(replica, hardware);
  if (devices === undefined) return undefined;
  const attached = registered.source.kind === 'attached' ? registered.source.url : null;
  return {
    replicaId: replica.replicaId,
    endpointId: replica.endpointId,
    fromPhase,
    engine: endpoint.engine,
    measures: {
      modelVersionId: replica.modelVersionId,
      precision: registered.precision,
      device: {
        acceleratorType: hardware.node.accelerators.find((accelerator) => accelerator.acceleratorId === replica.acceleratorIds[0])?.type ?? 'cpu',
        slice: replica.mig?.profile ?? null, tensorParallel: Math.max(1, replica.acceleratorIds.length), nodes: replica.members.length,
      },
      weightBytes: registered.artifacts.length === 0 ? null : registered.artifacts.reduce((sum, artifact) => sum + artifact.bytes, 0),
    },
    pull: { files: registered.artifacts, sources: [registered.source, version.source, ...version.fallbackSources] },
    spec: {
      replicaId: replica.replicaId,
      modelName: version.modelName,
      slots: endpoint.serving.slotsPerReplica,
      contextTokens: registered.contextTokensMax > 0 ? Math.min(endpoint.serving.contextTokens, registered.contextTokensMax) : endpoint.serving.contextTokens,
      options: endpoint.engineOptions,
      adapters: endpoint.adapters?.map(({ name }) => name),
      device: devices.length === 0 ? null : devices.join(','),
      attachedUrl: attached,
      logFile: `${folder}/engine.log`,
      stateDir: folder,
    },
  };
}

/** What the engine is to see of the GPUs: UUIDs of whole ones, or of the MIG instance. Undefined while that is not there. */
function devicesOf({ mig, acceleratorIds }: ReplicaState, { node, geometries }: StartHardware): readonly string[] | undefined {
  if (mig === null) return node.accelerators.filter((accelerator) => acceleratorIds.includes(accelerator.acceleratorId)).flatMap((accelerator) => accelerator.device ?? []);
  const instance = geometries.get(acceleratorIds[0] ?? '')?.instances.find((one) => one.profile === mig.profile && one.start === mig.start);
  return instance === undefined || instance.uuid === null ? undefined : [instance.uuid];
}
