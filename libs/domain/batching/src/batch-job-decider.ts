import type { BatchJobChunkCompletedV1, BatchJobCreatedV2, BatchJobFailedV1, BatchJobFinishedV1, BatchJobStartedV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider, type Decision } from '@penstock/kernel';
import { evolveBatchJob, type BatchJobEvent } from './batch-job-events.js';
import { isChunkCompleted, isUnfinished, type BatchJobState } from './batch-job.js';
import { toBatchObject } from './batch-object.js';

/** `nowMs` is milliseconds since the epoch and becomes the time of what is decided. */
export type BatchJobCommand = { readonly nowMs: number } & (
  | { readonly kind: 'create'; readonly data: BatchJobCreatedV2 }
  | { readonly kind: 'start'; readonly data: BatchJobStartedV1 }
  | { readonly kind: 'fail'; readonly data: BatchJobFailedV1 }
  | { readonly kind: 'complete-chunk'; readonly data: BatchJobChunkCompletedV1 }
  | { readonly kind: 'request-cancel'; readonly batchId: string; readonly organisationId: string }
  /** `chunksSeen` is how many completed chunks the files were made of: with more by now they must be made again. */
  | { readonly kind: 'finish'; readonly data: BatchJobFinishedV1; readonly chunksSeen: number }
);

/**
 * The life of a batch job: validating, running, and one of failed, completed, cancelled, expired.
 * Workers race for each step; the first to write wins and the step of the others changes nothing, so every line counts once.
 */
export const batchJobDecider: Decider<BatchJobState | null, BatchJobCommand, BatchJobEvent> = {
  initialState: null,
  evolve: evolveBatchJob,
  decide(command, state) {
    if (command.kind === 'create') return state === null ? acceptAt(command.nowMs, { type: 'batch-job.created.v2', data: command.data }) : accept();
    if (command.kind === 'request-cancel') return decideCancel(command, state);
    if (state === null) return refuse({ code: 'batch_not_found', message: 'The batch does not exist.' });
    return decideStep(command, state);
  },
};

function decideStep(command: Exclude<BatchJobCommand, { kind: 'create' | 'request-cancel' }>, state: BatchJobState): Decision<BatchJobEvent> {
  const isValidating = state.phase === 'validating';
  switch (command.kind) {
    case 'start':
      return isValidating && state.cancelRequestedAt === null ? acceptAt(command.nowMs, { type: 'batch-job.started.v1', data: command.data }) : accept();
    case 'fail':
      return isValidating && state.cancelRequestedAt === null ? acceptAt(command.nowMs, { type: 'batch-job.failed.v1', data: command.data }) : accept();
    case 'complete-chunk': {
      const isNews = state.phase === 'running' && !isChunkCompleted(state, command.data.chunk);
      return isNews ? acceptAt(command.nowMs, { type: 'batch-job.chunk-completed.v1', data: command.data }) : accept();
    }
    case 'finish':
      return isUnfinished(state) && Object.keys(state.chunks).length === command.chunksSeen ? acceptAt(command.nowMs, { type: 'batch-job.finished.v1', data: command.data }) : accept();
  }
}

function decideCancel(command: Extract<BatchJobCommand, { kind: 'request-cancel' }>, state: BatchJobState | null): Decision<BatchJobEvent> {
  if (state === null || state.organisationId !== command.organisationId) {
    return refuse({ code: 'batch_not_found', message: `No batch found with id '${command.batchId}'.`, param: 'batch_id' });
  }
  if (!isUnfinished(state)) {
    return refuse({ code: 'invalid_value', message: `A batch with status '${toBatchObject(state).status}' cannot be cancelled; only one that is validating or in progress can.`, param: 'batch_id' });
  }
  if (state.cancelRequestedAt !== null) return accept();
  return acceptAt(command.nowMs, { type: 'batch-job.cancel-requested.v1', data: { batchId: command.batchId } });
}

function acceptAt(nowMs: number, event: BatchJobEvent): Decision<BatchJobEvent> {
  return accept({ ...event, time: new Date(nowMs).toISOString() });
}
