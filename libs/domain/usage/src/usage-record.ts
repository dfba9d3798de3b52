import type { UsageRecord } from '@penstock/contract-events';
import type { AggregateRef } from '@penstock/kernel';

/** As the contract has them. */
const FINISH_REASON_LENGTH_MAX = 50;
const ERROR_CODE_LENGTH_MAX = 100;

/** What is known of a request when it is let in. A JSON value: it is written down before the engine hears of the request. */
export interface UsageDraft extends Pick<UsageRecord,
  'requestId' | 'organisationId' | 'projectId' | 'keyId' | 'endpointId' | 'modelName' | 'modelVersionId' | 'batchId' | 'operation' | 'stream' | 'startedAt'> {
  readonly replicaId: string | null;
}

/** How far a request got: what was produced and handed to the client's socket. */
export interface UsageProgress extends Pick<UsageRecord, 'promptTokens' | 'cachedTokens' | 'completionTokens' | 'reasoningTokens'> {
  readonly replicaId: string | null;
}

/** How a request ended. */
export interface UsageOutcome extends UsageProgress, Pick<UsageRecord,
  'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated' | 'queueMs' | 'ttftMs' | 'durationMs' | 'engineMs'> {
  /** The version that answered, which a deployment in between may have changed. */
  readonly modelVersionId?: string | undefined;
}

/** The record is valid whatever an engine said: it shares its event with others, which a wrong one would take along. */
export function settleUsage(draft: UsageDraft, outcome: UsageOutcome): UsageRecord {
  // Field by field: every request ends here, and spreading costs several times as much.
  return {
    requestId: draft.requestId, organisationId: draft.organisationId, projectId: draft.projectId, keyId: draft.keyId, endpointId: draft.endpointId, modelName: draft.modelName,
    modelVersionId: outcome.modelVersionId ?? draft.modelVersionId, replicaId: outcome.replicaId, batchId: draft.batchId, operation: draft.operation, stream: draft.stream,
    status: outcome.status, finishReason: shortened(outcome.finishReason, FINISH_REASON_LENGTH_MAX), httpStatus: outcome.httpStatus, errorCode: shortened(outcome.errorCode, ERROR_CODE_LENGTH_MAX),
    promptTokens: wholeTokens(outcome.promptTokens), cachedTokens: wholeTokens(outcome.cachedTokens), completionTokens: wholeTokens(outcome.completionTokens), reasoningTokens: wholeTokens(outcome.reasoningTokens),
    tokensEstimated: outcome.tokensEstimated, startedAt: draft.startedAt, queueMs: duration(outcome.queueMs), ttftMs: outcome.ttftMs === null ? null : duration(outcome.ttftMs), durationMs: duration(outcome.durationMs), engineMs: duration(outcome.engineMs),
  };
}

function wholeTokens(count: number): number {
  return count >= 0 && Number.isSafeInteger(count) ? count : Math.min(Number.MAX_SAFE_INTEGER, Math.round(Math.max(0, count || 0)));
}

function duration(milliseconds: number): number {
  return milliseconds >= 0 && Number.isFinite(milliseconds) ? milliseconds : 0;
}

function shortened(text: string | null, lengthMax: number): string | null {
  return text !== null && text.length > lengthMax ? text.slice(0, lengthMax) : text;
}

/** The record of a request whose gateway died: what was last known to be delivered counts, and it says that it is an estimate. */
export function interruptedUsage(draft: UsageDraft, progress: UsageProgress | undefined, nowMs: number): UsageRecord {
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
export function usageRef(record: Pick<UsageRecord, 'organisationId' | 'endpointId'>): AggregateRef {
  return { context: 'usage', aggregate: record.organisationId, id: record.endpointId };
}
