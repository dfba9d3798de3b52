import type { SequencedUsage } from '@penstock/domain-usage';

/** Columns of `usage_raw_v1` that an insert gives, in the order of {@link toUsageRow}. */
export const USAGE_COLUMNS = [
  'organisation_id', 'request_id', 'project_id', 'key_id', 'endpoint_id', 'model_name', 'model_version_id', 'replica_id', 'batch_id', 'operation', 'stream', 'status',
  'finish_reason', 'http_status', 'error_code', 'prompt_tokens', 'cached_tokens', 'completion_tokens', 'reasoning_tokens', 'tokens_estimated', 'started_at', 'queue_ms',
  'ttft_ms', 'duration_ms', 'engine_ms', 'sequence',
] as const;

/** One row as `JSONCompactEachRow` takes it. */
export function toUsageRow({ record, sequence }: SequencedUsage): readonly (string | number | boolean | null)[] {
  return [
    record.organisationId, record.requestId, record.projectId, record.keyId, record.endpointId, record.modelName, record.modelVersionId, record.replicaId, record.batchId,
    record.operation, record.stream, record.status, record.finishReason, record.httpStatus, record.errorCode, record.promptTokens, record.cachedTokens,
    record.completionTokens, record.reasoningTokens, record.tokensEstimated, toDateTime(record.startedAt), record.queueMs, record.ttftMs, record.durationMs,
    record.engineMs, sequence,
  ];
}

/** `2026-11-29 12:00:00.000`, in UTC, from ISO 8601. */
function toDateTime(instant: string): string {
  return new Date(instant).toISOString().replace('T', ' ').slice(0, -1);
}
