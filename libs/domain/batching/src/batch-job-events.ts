import type { CatalogueEvent, EventOf } from '@penstock/contract-events';
import type * as events from '@penstock/contract-events';
import type { BatchJobState } from './batch-job.js';

/** Events of a batch job. `time` is there on recorded events and on those that were just decided. */
export type BatchJobEvent = (
  | EventOf<typeof events.batchJobCreatedV2>
  | EventOf<typeof events.batchJobStartedV1>
  | EventOf<typeof events.batchJobFailedV1>
  | EventOf<typeof events.batchJobChunkCompletedV1>
  | EventOf<typeof events.batchJobCancelRequestedV1>
  | EventOf<typeof events.batchJobFinishedV1>
) & { readonly time?: string };

const TYPES: ReadonlySet<string> = new Set<BatchJobEvent['type']>([
  'batch-job.created.v2', 'batch-job.started.v1', 'batch-job.failed.v1', 'batch-job.chunk-completed.v1', 'batch-job.cancel-requested.v1', 'batch-job.finished.v1',
]);

export function isBatchJobEvent<Event extends CatalogueEvent>(event: Event): event is Event & BatchJobEvent {
  return TYPES.has(event.type);
}

/** Folds one event of a job. What comes before `created` is dropped: it cannot have been written by the decider. */
export function evolveBatchJob(state: BatchJobState | null, event: BatchJobEvent): BatchJobState | null {
  const at = event.time ?? null;
  if (event.type === 'batch-job.created.v2') return state ?? createdJob(event.data, at);
  if (state === null) return null;
  switch (event.type) {
    case 'batch-job.started.v1':
      return { ...state, phase: 'running', started: { total: event.data.total, modelName: event.data.modelName, at } };
    case 'batch-job.failed.v1':
      return { ...state, phase: 'failed', failure: { errors: event.data.errors, at } };
    case 'batch-job.chunk-completed.v1':
      return withChunk(state, event.data, at);
    case 'batch-job.cancel-requested.v1':
      return { ...state, cancelRequestedAt: state.cancelRequestedAt ?? at ?? state.expiresAt };
    case 'batch-job.finished.v1': {
      const { status, completed, failed, outputFileId, errorFileId } = event.data;
      return { ...state, phase: 'finished', chunks: {}, completed, failed, finished: { status, completed, failed, outputFileId, errorFileId, at } };
    }
  }
}

function createdJob({ outputExpiresAfterSeconds, ...data }: EventOf<typeof events.batchJobCreatedV2>['data'], at: string | null): BatchJobState {
  return {
    ...data, ...(outputExpiresAfterSeconds === null ? {} : { outputExpiresAfterSeconds }), phase: 'validating', createdAt: at, started: null, chunks: {}, completed: 0, failed: 0,
    lastChunkAt: null, cancelRequestedAt: null, failure: null, finished: null,
  };
}

function withChunk(state: BatchJobState, chunk: EventOf<typeof events.batchJobChunkCompletedV1>['data'], at: string | null): BatchJobState {
  const key = String(chunk.chunk);
  if (state.chunks[key] !== undefined) return state;
  return { ...state, chunks: { ...state.chunks, [key]: chunk }, completed: state.completed + chunk.completed, failed: state.failed + chunk.failed, lastChunkAt: at };
}
