import type { z } from 'zod';
import type { EventContract } from './define-event.js';
import { apiKeyCreatedV1 } from './api-key-created.v1.js';
import { apiKeyCreatedV2 } from './api-key-created.v2.js';
import { apiKeyRevokedV1 } from './api-key-revoked.v1.js';
import { apiKeyRotatedV1 } from './api-key-rotated.v1.js';
import { batchJobCancelRequestedV1 } from './batch-job-cancel-requested.v1.js';
import { batchJobChunkCompletedV1 } from './batch-job-chunk-completed.v1.js';
import { batchJobCreatedV1 } from './batch-job-created.v1.js';
import { batchJobCreatedV2 } from './batch-job-created.v2.js';
import { batchJobFailedV1 } from './batch-job-failed.v1.js';
import { batchJobFinishedV1 } from './batch-job-finished.v1.js';
import { batchJobStartedV1 } from './batch-job-started.v1.js';
import { endpointAdaptersSetV1 } from './endpoint-adapters-set.v1.js';
import { endpointDeployedV1 } from './endpoint-deployed.v1.js';
import { endpointPlacementSetV1 } from './endpoint-placement-set.v1.js';
import { endpointRetiredV1 } from './endpoint-retired.v1.js';
import { fileDeletedV1 } from './file-deleted.v1.js';
import { fileUploadedV1 } from './file-uploaded.v1.js';
import { keyUsesNotedV1 } from './key-uses-noted.v1.js';
import { limitsSetV1 } from './limits-set.v1.js';
import { migChangeEndedV1 } from './mig-change-ended.v1.js';
import { migChangePlannedV1 } from './mig-change-planned.v1.js';
import { migInstanceCreatedV1 } from './mig-instance-created.v1.js';
import { migInstanceDestroyedV1 } from './mig-instance-destroyed.v1.js';
import { modelVersionRegisteredV1 } from './model-version-registered.v1.js';
import { modelVersionRejectedV1 } from './model-version-rejected.v1.js';
import { modelVersionSubmittedV1 } from './model-version-submitted.v1.js';
import { modelVersionTensorsReadV1 } from './model-version-tensors-read.v1.js';
import { nodeCordonedV1 } from './node-cordoned.v1.js';
import { nodeDrainRequestedV1 } from './node-drain-requested.v1.js';
import { nodeJoinedV1 } from './node-joined.v1.js';
import { nodeJoinedV2 } from './node-joined.v2.js';
import { nodeLostV1 } from './node-lost.v1.js';
import { nodeReclaimAnnouncedV1 } from './node-reclaim-announced.v1.js';
import { nodeUncordonedV1 } from './node-uncordoned.v1.js';
import { organisationCreatedV1 } from './organisation-created.v1.js';
import { organisationResumedV1 } from './organisation-resumed.v1.js';
import { organisationSuspendedV1 } from './organisation-suspended.v1.js';
import { placementDecidedV1 } from './placement-decided.v1.js';
import { placementDecidedV2 } from './placement-decided.v2.js';
import { placementRefusedV1 } from './placement-refused.v1.js';
import { placementRefusedV2 } from './placement-refused.v2.js';
import { projectCreatedV1 } from './project-created.v1.js';
import { replicaAdvancedV1 } from './replica-advanced.v1.js';
import { replicaCircuitClosedV1 } from './replica-circuit-closed.v1.js';
import { replicaCircuitOpenedV1 } from './replica-circuit-opened.v1.js';
import { replicaDrainStartedV1 } from './replica-drain-started.v1.js';
import { replicaFailedV1 } from './replica-failed.v1.js';
import { replicaPlacedV1 } from './replica-placed.v1.js';
import { replicaPlacedV2 } from './replica-placed.v2.js';
import { replicaProfileMeasuredV1 } from './replica-profile-measured.v1.js';
import { replicaReadyV1 } from './replica-ready.v1.js';
import { replicaStoppedV1 } from './replica-stopped.v1.js';
import { reservationMadeV1 } from './reservation-made.v1.js';
import { reservationRefusedV1 } from './reservation-refused.v1.js';
import { reservationReleasedV1 } from './reservation-released.v1.js';
import { serviceAccountCreatedV1 } from './service-account-created.v1.js';
import { serviceAccountDisabledV1 } from './service-account-disabled.v1.js';
import { trafficSplitRemovedV1 } from './traffic-split-removed.v1.js';
import { trafficSplitSetV1 } from './traffic-split-set.v1.js';
import { usageRecordedV1 } from './usage-recorded.v1.js';
import { usageRecordedV2 } from './usage-recorded.v2.js';
import { wantedReplicasChangedV1 } from './wanted-replicas-changed.v1.js';

/** Every published version of every event type. */
export const eventCatalogue = [
  organisationCreatedV1,
  projectCreatedV1,
  apiKeyCreatedV1,
  apiKeyCreatedV2,
  apiKeyRotatedV1,
  apiKeyRevokedV1,
  keyUsesNotedV1,
  serviceAccountCreatedV1,
  serviceAccountDisabledV1,
  organisationSuspendedV1,
  organisationResumedV1,
  limitsSetV1,
  modelVersionSubmittedV1,
  modelVersionRegisteredV1,
  modelVersionRejectedV1,
  modelVersionTensorsReadV1,
  endpointDeployedV1,
  endpointAdaptersSetV1,
  endpointPlacementSetV1,
  endpointRetiredV1,
  trafficSplitSetV1,
  trafficSplitRemovedV1,
  nodeJoinedV1,
  nodeJoinedV2,
  nodeLostV1,
  nodeCordonedV1,
  nodeUncordonedV1,
  nodeDrainRequestedV1,
  nodeReclaimAnnouncedV1,
  replicaPlacedV1,
  replicaPlacedV2,
  replicaAdvancedV1,
  replicaReadyV1,
  replicaDrainStartedV1,
  replicaStoppedV1,
  replicaFailedV1,
  placementDecidedV1,
  placementDecidedV2,
  placementRefusedV1,
  placementRefusedV2,
  reservationMadeV1,
  reservationRefusedV1,
  reservationReleasedV1,
  migChangePlannedV1,
  migInstanceCreatedV1,
  migInstanceDestroyedV1,
  migChangeEndedV1,
  replicaProfileMeasuredV1,
  wantedReplicasChangedV1,
  replicaCircuitOpenedV1,
  replicaCircuitClosedV1,
  usageRecordedV1,
  usageRecordedV2,
  fileUploadedV1,
  fileDeletedV1,
  batchJobCreatedV1,
  batchJobCreatedV2,
  batchJobStartedV1,
  batchJobFailedV1,
  batchJobChunkCompletedV1,
  batchJobCancelRequestedV1,
  batchJobFinishedV1,
] as const satisfies readonly EventContract[];

const byType = new Map<string, EventContract>(eventCatalogue.map((contract) => [contract.type, contract]));

/** The contract of a type such as `replica.ready.v1`; undefined for a type nobody published. */
export function contractOf(type: string): EventContract | undefined {
  return byType.get(type);
}

/** `{ type, data }` of every published event version: switch on `type` and `data` is typed. */
export type CatalogueEvent = EventOf<(typeof eventCatalogue)[number]>;

/** `{ type, data }` of one contract. */
export type EventOf<Contract> = Contract extends EventContract<infer Type, infer Schema> ? { readonly type: Type; readonly data: z.output<Schema> } : never;

/** Narrows an event that came out of the log: its body was checked against the catalogue when it was read. */
export function asCatalogueEvent<Event extends { readonly type: string; readonly data: unknown }>(event: Event): Event & CatalogueEvent {
  return event as Event & CatalogueEvent;
}
