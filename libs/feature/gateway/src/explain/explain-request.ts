import type { UsageRecord } from '@penstock/contract-events';
import { describeError, type RequestExplanation } from '@penstock/contract-http';
import type { ReplicaState } from '@penstock/domain-lifecycle';
import type { Hedge } from '../frame/hedge-race.js';
import type { NotedRefusal } from './refusal-book.js';

/** A wait that nobody notices. */
const NOTICED_MS = 1;

export interface RequestTraces {
  /** What it used, once its record has arrived. */
  readonly record: UsageRecord | undefined;
  /** Why this gateway could not serve it. */
  readonly refusal: NotedRefusal | undefined;
  /** The replica that worked on it, while the fleet knows of it. */
  readonly replica: ReplicaState | undefined;
  /** How its second attempt came out, where it had one at this gateway. */
  readonly hedge: Hedge | undefined;
  readonly isOperator: boolean;
}

/** Undefined when nothing is known of the request. */
export function explainRequest(id: string, traces: RequestTraces): RequestExplanation | undefined {
  const { record, refusal, replica, hedge, isOperator } = traces;
  if (record === undefined && refusal === undefined) return undefined;
  const startedAtMs = record === undefined ? refusal?.atMs ?? 0 : Date.parse(record.startedAt);
  const coldStart = record === undefined || replica === undefined ? null : coldStartOf(record, startedAtMs, replica);
  const code = refusal?.fault.code ?? record?.errorCode ?? null;
  return {
    id, object: 'request.explanation',
    status: record?.status ?? 'refused',
    http_status: record?.httpStatus ?? describeError(refusal?.fault.code ?? 'internal_error').status,
    error: code === null ? null : { code, message: refusal?.fault.message ?? null, limit: refusal?.fault.limit ?? null, retry_after_ms: refusal?.fault.retryAfterMs ?? null },
    model: record?.modelName ?? refusal?.model ?? null,
    operation: record?.operation ?? refusal?.operation ?? null,
    batch_id: record?.batchId ?? null,
    started_at: startedAtMs / 1_000,
    timings: record === undefined ? null : { queue_ms: record.queueMs, time_to_first_token_ms: record.ttftMs, engine_ms: record.engineMs, duration_ms: record.durationMs },
    usage: record === undefined ? null : { prompt_tokens: record.promptTokens, cached_tokens: record.cachedTokens, completion_tokens: record.completionTokens },
    replica_id: record?.replicaId ?? null,
    node_id: isOperator ? replica?.nodeId ?? null : null,
    cold_start: coldStart === null ? null : { placed_at: coldStart.placedAtMs / 1_000, ready_at: coldStart.readyAtMs / 1_000 },
    why: [...sayRefusal(refusal, record), ...(record === undefined ? [] : [sayWait(record, coldStart), ...sayHedge(hedge), ...sayWork(record)])],
  };
}

interface ColdStart {
  readonly placedAtMs: number;
  readonly readyAtMs: number;
}

/** A replica that became ready while the request waited is what it waited for. */
function coldStartOf({ queueMs }: UsageRecord, startedAtMs: number, { placedAtMs, readyAtMs }: ReplicaState): ColdStart | null {
  return readyAtMs !== null && readyAtMs >= startedAtMs && readyAtMs <= startedAtMs + queueMs ? { placedAtMs, readyAtMs } : null;
}

function sayRefusal(refusal: NotedRefusal | undefined, record: UsageRecord | undefined): string[] {
  if (refusal === undefined) return record?.errorCode === null || record === undefined ? [] : [`It ended with ${record.httpStatus} ${record.errorCode}.`];
  const { code, message, limit, retryAfterMs } = refusal.fault;
  return [
    `It ended with ${describeError(code).status} ${code}: ${message}`,
    ...(limit === undefined ? [] : [`The limit was ${limit.name} (${limit.scope}): ${limit.limit}, of which ${limit.used} were taken${limit.requested === undefined ? '' : ` and ${limit.requested} asked for`}.`]),
    ...(retryAfterMs === undefined ? [] : [`It could be sent again ${Math.ceil(retryAfterMs)} ms later.`]),
  ];
}

function sayWait({ queueMs }: UsageRecord, coldStart: ColdStart | null): string {
  if (queueMs < NOTICED_MS) return 'It did not wait: a slot of a replica was free.';
  const waited = `It waited ${Math.round(queueMs)} ms`;
  if (coldStart === null) return `${waited} in the queue of the model, because every slot that suited it was taken or no replica was ready.`;
  return `${waited} for a start: no replica was ready until ${new Date(coldStart.readyAtMs).toISOString()}, ${Math.round(coldStart.readyAtMs - coldStart.placedAtMs)} ms after the new one was placed.`;
}

function sayHedge(hedge: Hedge | undefined): string[] {
  if (hedge === undefined) return [];
  const { winner, replicaIds: [first, second], afterMs, loserMs } = hedge;
  const asked = `Replica ${first} was late, so after ${Math.round(afterMs)} ms replica ${second} was asked as well`;
  if (winner === 'none') return [`${asked}; neither of them answered.`];
  return [`${asked}; the answer is that of ${winner === 'first' ? first : second}, and the other one held a slot for ${Math.round(loserMs)} ms without being billed for tokens.`];
}

function sayWork({ replicaId, engineMs, ttftMs, durationMs, promptTokens, cachedTokens, completionTokens, status }: UsageRecord): string[] {
  if (replicaId === null) return ['It never reached a replica.'];
  const tokens = promptTokens + completionTokens === 0 ? '' : ` for ${promptTokens} prompt tokens (${cachedTokens} of them cached) and ${completionTokens} of the answer`;
  return [
    `Replica ${replicaId} worked on it for ${Math.round(engineMs)} ms of ${Math.round(durationMs)} ms${tokens}${ttftMs === null ? '' : `; the first token came after ${Math.round(ttftMs)} ms`}.`,
    ...(status === 'aborted' ? ['Its client went away before the end.'] : []),
    ...(status === 'interrupted' ? ['Its gateway died before the end, and settled the record after its restart.'] : []),
  ];
}
