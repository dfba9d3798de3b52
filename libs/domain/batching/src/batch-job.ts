import type { BatchJobChunkCompletedV1, BatchJobCreatedV2, BatchJobFailedV1, BatchJobFinishedV1, BatchJobStartedV1 } from '@penstock/contract-events';
import type { AggregateRef } from '@penstock/kernel';

/** Where a batch job stands. `running` lasts until the output files are registered. */
export type BatchJobPhase = 'validating' | 'running' | 'failed' | 'finished';

/** A batch job as a fold of its events; plain JSON, so that it can be kept in a snapshot or a table as it is. Times are ISO 8601. */
export interface BatchJobState extends Omit<BatchJobCreatedV2, 'outputExpiresAfterSeconds'> {
  /** Absent where result files are kept. */
  readonly outputExpiresAfterSeconds?: number;
  readonly phase: BatchJobPhase;
  readonly createdAt: string | null;
  readonly started: (Omit<BatchJobStartedV1, 'batchId'> & { readonly at: string | null }) | null;
  /** Completed chunks by number. Emptied when the job ends, since only a job that runs needs its checkpoints. */
  readonly chunks: Readonly<Record<string, BatchJobChunkCompletedV1>>;
  /** Lines that were answered with a status of 2xx, and all others that have their row. */
  readonly completed: number;
  readonly failed: number;
  readonly lastChunkAt: string | null;
  readonly cancelRequestedAt: string | null;
  readonly failure: (Omit<BatchJobFailedV1, 'batchId'> & { readonly at: string | null }) | null;
  readonly finished: (Omit<BatchJobFinishedV1, 'batchId'> & { readonly at: string | null }) | null;
}

export function batchJobRef(batchId: string): AggregateRef {
  return { context: 'batch', aggregate: 'batch-job', id: batchId };
}

export function isUnfinished(job: BatchJobState): boolean {
  return job.phase === 'validating' || job.phase === 'running';
}

export function isExpired(job: BatchJobState, nowMs: number): boolean {
  return Date.parse(job.expiresAt) <= nowMs;
}

export function isChunkCompleted(job: BatchJobState, chunk: number): boolean {
  return job.chunks[String(chunk)] !== undefined;
}

/** Chunk numbers in order: the order in which their outputs are put together, so that every worker builds the same bytes. */
export function completedChunks(job: BatchJobState): readonly BatchJobChunkCompletedV1[] {
  return Object.values(job.chunks).sort((left, right) => left.chunk - right.chunk);
}
