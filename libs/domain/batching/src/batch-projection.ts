import { asCatalogueEvent } from '@penstock/contract-events';
import type { Projection } from '@penstock/kernel';
import { evolveBatchJob, isBatchJobEvent } from './batch-job-events.js';
import { isUnfinished, type BatchJobState } from './batch-job.js';
import { evolveFile, isFileEvent, type FileState } from './file.js';

/** Ended jobs that stay in memory; older ones are in the database and in the log. */
export const ENDED_JOBS_IN_MEMORY_MAX = 10_000;

/** Files that stay in memory; older ones are in the database and in the log. */
export const FILES_IN_MEMORY_MAX = 50_000;

/** What the batch service holds in memory, in the order of creation: every unfinished job, and the newest of the rest. */
export interface BatchState {
  readonly jobs: Map<string, BatchJobState>;
  /** Without deleted ones. */
  readonly files: Map<string, FileState>;
}

interface BatchSnapshot {
  readonly jobs: readonly BatchJobState[];
  readonly files: readonly FileState[];
}

export const batchProjection: Projection<BatchState> = {
  name: 'batch',
  version: 1,
  streams: ['EV_BATCH'],
  initialState: () => ({ jobs: new Map(), files: new Map() }),
  apply(state, recorded) {
    const event = asCatalogueEvent(recorded);
    if (isBatchJobEvent(event)) {
      const job = evolveBatchJob(state.jobs.get(event.data.batchId) ?? null, event);
      if (job === null) return state;
      state.jobs.set(job.batchId, job);
      if (!isUnfinished(job)) dropOldest(state.jobs, ENDED_JOBS_IN_MEMORY_MAX, (candidate) => !isUnfinished(candidate));
    } else if (isFileEvent(event)) {
      const file = evolveFile(state.files.get(event.data.fileId) ?? null, event);
      if (file === null) return state;
      if (file.isDeleted) state.files.delete(file.fileId);
      else state.files.set(file.fileId, file);
      dropOldest(state.files, FILES_IN_MEMORY_MAX, () => true);
    }
    return state;
  },
  snapshot: (state): BatchSnapshot => ({ jobs: [...state.jobs.values()], files: [...state.files.values()] }),
  restore(snapshot) {
    const { jobs, files } = snapshot as BatchSnapshot;
    return { jobs: new Map(jobs.map((job) => [job.batchId, job])), files: new Map(files.map((file) => [file.fileId, file])) };
  },
};

/** Unfinished jobs are few and never dropped, so the map may stand above the limit by their number. */
function dropOldest<Value>(map: Map<string, Value>, max: number, isDroppable: (value: Value) => boolean): void {
  if (map.size <= max) return;
  for (const [key, value] of map) {
    if (!isDroppable(value)) continue;
    map.delete(key);
    return;
  }
}
