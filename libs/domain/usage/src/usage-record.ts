import type { UsageRecordedV1 } from '@penstock/contract-events';
import type { AggregateRef } from '@penstock/kernel';

/** What is known of a request when it is let in. A JSON value: it is written down before the engine hears of the request. */
export interface UsageDraft extends Pick<UsageRecordedV1,
  'requestId' | 'organisationId' | 'projectId' | 'keyId' | 'endpointId' | 'modelName' | 'modelVersionId' | 'batchId' | 'operation' | 'stream' | 'startedAt'> {
  readonly replicaId: string | null;
}

/** How far a request got: what was produced and handed to the client's socket. */
export interface UsageProgress extends Pick<UsageRecordedV1, 'promptTokens' | 'cachedTokens' | 'completionTokens' | 'reasoningTokens'> {
  readonly replicaId: string | null;
}

/** How a request ended. */
export interface UsageOutcome extends UsageProgress, Pick<UsageRecordedV1,
  'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated' | 'queueMs' | 'ttftMs' | 'durationMs' | 'engineMs'> {
  /** The version that answered, which a deployment in between may have changed. */
  readonly modelVersionId?: string | undefined;
}

export function settleUsage(draft: UsageDraft, outcome: UsageOutcome): UsageRecordedV1 {
  // Field by field: every request ends here, and spreading costs several times as much.
  return {
    requestId: draft.requestId, organisationId: draft.organisationId, projectId: draft.projectId, keyId: draft.keyId, endpointId: draft.endpointId, modelName: draft.modelName,
    modelVersionId: outcome.modelVersionId ?? draft.modelVersionId, replicaId: outcome.replicaId, batchId: draft.batchId, operation: draft.operation, stream: draft.stream,
    status: outcome.status, finishReason: outcome.finishReason, httpStatus: outcome.httpStatus, errorCode: outcome.errorCode,
    promptTokens: outcome.promptTokens, cachedTokens: outcome.cachedTokens, completionTokens: outcome.completionTokens, reasoningTokens: outcome.reasoningTokens,
    tokensEstimated: outcome.tokensEstimated, startedAt: draft.startedAt, queueMs: outcome.queueMs, ttftMs: outcome.ttftMs, durationMs: outcome.durationMs, engineMs: outcome.engineMs,
  };
}

/** The record of a request whose gateway died: what was last known to be delivered counts, and it says that it is an estimate. */
export function interruptedUsage(draft: UsageDraft, progress: UsageProgress | undefined, nowMs: number): UsageRecordedV1 {
  const delivered = progress ?? { replicaId: draft.replicaId, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
  return settleUsage(draft, {
    ...delivered,
    status: 'interrupted',
    finishReason: null,
    httpStatus: 500,
    errorCode: 'gateway_interrupted',
    tokensEstimated: true,
    queueMs: 0,
    ttftMs: null,
    durationMs: Math.max(0, nowMs - Date.parse(draft.startedAt)),
    engineMs: 0,
  });
}

/** Usage of one organisation at one endpoint shares a subject. */
export function usageRef(record: Pick<UsageRecordedV1, 'organisationId' | 'endpointId'>): AggregateRef {
  return { context: 'usage', aggregate: record.organisationId, id: record.endpointId };
}
