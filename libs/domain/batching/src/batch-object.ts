import type { BatchObject, FileObject } from '@penstock/contract-commands';
import type { BatchJobState } from './batch-job.js';
import type { FileState } from './file.js';

/** The job in the shape of OpenAI's batch object. */
export function toBatchObject(job: BatchJobState): BatchObject {
  const finishedAs = (status: 'completed' | 'cancelled' | 'expired') => (job.finished?.status === status ? seconds(job.finished.at) : null);
  const total = job.started?.total ?? 0;
  const isAllDone = job.started !== null && job.completed + job.failed >= total;
  return {
    id: job.batchId,
    object: 'batch',
    endpoint: job.endpoint,
    model: job.started?.modelName ?? null,
    errors: job.failure === null ? null : { object: 'list', data: job.failure.errors },
    input_file_id: job.inputFileId,
    completion_window: completionWindow(job.completionWindowSeconds),
    status: statusOf(job, isAllDone),
    output_file_id: job.finished?.outputFileId ?? null,
    error_file_id: job.finished?.errorFileId ?? null,
    created_at: seconds(job.createdAt) ?? 0,
    in_progress_at: seconds(job.started?.at),
    expires_at: seconds(job.expiresAt),
    finalizing_at: isAllDone ? seconds(job.lastChunkAt) : null,
    completed_at: finishedAs('completed'),
    failed_at: seconds(job.failure?.at),
    expired_at: finishedAs('expired'),
    cancelling_at: seconds(job.cancelRequestedAt),
    cancelled_at: finishedAs('cancelled'),
    request_counts: { total, completed: job.completed, failed: job.failed },
    metadata: job.metadata,
  };
}

function statusOf(job: BatchJobState, isAllDone: boolean): BatchObject['status'] {
  if (job.finished !== null) return job.finished.status;
  if (job.phase === 'failed') return 'failed';
  if (job.cancelRequestedAt !== null) return 'cancelling';
  if (job.phase === 'validating') return 'validating';
  return isAllDone ? 'finalizing' : 'in_progress';
}

/** The file in the shape of OpenAI's file object. */
export function toFileObject(file: FileState): FileObject {
  return {
    id: file.fileId,
    object: 'file',
    bytes: file.bytes,
    created_at: seconds(file.createdAt) ?? 0,
    expires_at: seconds(file.expiresAt),
    filename: file.filename,
    purpose: file.purpose,
    status: 'processed',
    status_details: null,
  };
}

function seconds(instant: string | null | undefined): number | null {
  return instant === null || instant === undefined ? null : Math.floor(Date.parse(instant) / 1_000);
}

const SECONDS_PER_HOUR = 3_600;

function completionWindow(windowSeconds: number): string {
  return windowSeconds % SECONDS_PER_HOUR === 0 ? `${windowSeconds / SECONDS_PER_HOUR}h` : `${windowSeconds}s`;
}

const WINDOW_PATTERN = /^([1-9]\d{0,3})h$/;

/** Seconds of a window such as `24h`; undefined for one that is not offered. */
export function parseCompletionWindow(text: string): number | undefined {
  const hours = WINDOW_PATTERN.exec(text)?.[1];
  return hours === '24' ? Number(hours) * SECONDS_PER_HOUR : undefined;
}
