import type { TableProjection } from '../projection/table-projection.js';
import { batchJobFold } from './batch-job-table.js';
import { fileFold } from './file-table.js';

/** Files and batch jobs, for the batch service. */
export const batchTableProjection: TableProjection = {
  name: 'batch',
  version: 1,
  schema: 'batch',
  streams: ['EV_BATCH'],
  tables: [fileFold, batchJobFold],
};
