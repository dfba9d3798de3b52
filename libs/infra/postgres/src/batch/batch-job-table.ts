import { EntitySchema } from '@mikro-orm/postgresql';
import { evolveBatchJob, isBatchJobEvent, type BatchJobState } from '@penstock/domain-batching';
import { foldTable } from '../projection/table-projection.js';
import { keyText, wholeNumber } from '../table-columns.js';

export interface BatchJobRow {
  readonly batchId: string;
  readonly organisationId: string;
  readonly phase: BatchJobState['phase'];
  /** Position in the stream of its creation. */
  readonly sequence: number;
  /** Numbers of completed chunks while the job runs. */
  readonly chunks: readonly number[];
  /** Without its chunks, which would make each checkpoint of a long job a longer write. */
  readonly state: BatchJobState;
}

export const batchJobTable = new EntitySchema<BatchJobRow>({
  name: 'BatchJobRow',
  tableName: 'batch_jobs',
  schema: '*',
  properties: {
    batchId: { type: 'text', ...keyText, primary: true },
    organisationId: { type: 'text' },
    phase: { type: 'text' },
    sequence: wholeNumber,
    chunks: { type: 'json' },
    state: { type: 'json' },
  },
  indexes: [{ name: 'batch_jobs_by_organisation', properties: ['organisationId', 'sequence'] }],
});

export const batchJobFold = foldTable<BatchJobRow>({
  table: batchJobTable,
  key: 'batchId',
  keyOf: (event) => (isBatchJobEvent(event) ? event.data.batchId : undefined),
  fold(row, event) {
    if (!isBatchJobEvent(event)) return row;
    const chunk = event.type === 'batch-job.chunk-completed.v1' ? event.data.chunk : undefined;
    if (chunk !== undefined && row?.chunks.includes(chunk) === true) return row;
    const state = evolveBatchJob(row?.state ?? null, event);
    if (state === null || state === row?.state) return row;
    const chunks = chunk === undefined ? (row?.chunks ?? []) : [...(row?.chunks ?? []), chunk];
    return {
      batchId: state.batchId,
      organisationId: state.organisationId,
      phase: state.phase,
      sequence: row?.sequence ?? event.sequence,
      chunks: state.phase === 'finished' ? [] : chunks,
      state: { ...state, chunks: {} },
    };
  },
});
