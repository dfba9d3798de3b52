import type { BatchObject, FileObject } from '@penstock/contract-commands';
import { toBatchObject, toFileObject, type BatchFilter, type BatchQueries, type FileFilter, type StoredFile } from '@penstock/domain-batching';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { batchJobTable } from './batch-job-table.js';
import { fileTable } from './file-table.js';

const options = { schema: 'batch', disableIdentityMap: true } as const;

/** Files and batch jobs from the tables that the projection `batch` keeps. */
export class PostgresBatchQueries implements BatchQueries {
  constructor(private readonly connection: PostgresConnection) {}

  async file(organisationId: string, fileId: string): Promise<StoredFile | undefined> {
    const row = await this.connection.query((manager) => manager.findOne(fileTable, { fileId, organisationId, isDeleted: false }, options));
    return row === null ? undefined : { file: toFileObject(row.state), objectKey: row.state.objectKey };
  }

  async files(filter: FileFilter): Promise<{ readonly files: readonly FileObject[]; readonly hasMore: boolean }> {
    const { organisationId, purpose, after, order, limit } = filter;
    const rows = await this.connection.query(async (manager) => {
      const last = after === undefined ? undefined : await manager.findOne(fileTable, { fileId: after, organisationId }, options);
      if (last === null) return [];
      const position = last === undefined ? {} : { sequence: order === 'asc' ? { $gt: last.sequence } : { $lt: last.sequence } };
      const where = { organisationId, isDeleted: false, ...(purpose === undefined ? {} : { purpose }), ...position };
      return manager.find(fileTable, where, { ...options, orderBy: { sequence: order }, limit: limit + 1 });
    });
    return { files: rows.slice(0, limit).map((row) => toFileObject(row.state)), hasMore: rows.length > limit };
  }

  async batch(organisationId: string, batchId: string): Promise<BatchObject | undefined> {
    const row = await this.connection.query((manager) => manager.findOne(batchJobTable, { batchId, organisationId }, options));
    return row === null ? undefined : toBatchObject(row.state);
  }

  async batches(filter: BatchFilter): Promise<{ readonly batches: readonly BatchObject[]; readonly hasMore: boolean }> {
    const { organisationId, after, limit } = filter;
    const rows = await this.connection.query(async (manager) => {
      const last = after === undefined ? undefined : await manager.findOne(batchJobTable, { batchId: after, organisationId }, options);
      if (last === null) return [];
      const where = { organisationId, ...(last === undefined ? {} : { sequence: { $lt: last.sequence } }) };
      return manager.find(batchJobTable, where, { ...options, orderBy: { sequence: 'desc' }, limit: limit + 1 });
    });
    return { batches: rows.slice(0, limit).map((row) => toBatchObject(row.state)), hasMore: rows.length > limit };
  }
}
