import type { BatchObject, FileObject } from '@penstock/contract-commands';

export interface StoredFile {
  readonly file: FileObject;
  readonly objectKey: string;
}

export interface FileFilter {
  readonly organisationId: string;
  readonly purpose?: string | undefined;
  /** Id of the last file of the page before; an id that is not there gives an empty page. */
  readonly after?: string | undefined;
  /** By time of upload. */
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

export interface BatchFilter {
  readonly organisationId: string;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Files and batch jobs out of a database, always of one organisation. Rejects when the database does not answer. */
export interface BatchQueries {
  /** Undefined for a file that is not there, was deleted, or belongs to somebody else. */
  file(organisationId: string, fileId: string): Promise<StoredFile | undefined>;
  files(filter: FileFilter): Promise<{ readonly files: readonly FileObject[]; readonly hasMore: boolean }>;
  batch(organisationId: string, batchId: string): Promise<BatchObject | undefined>;
  /** Newest first. */
  batches(filter: BatchFilter): Promise<{ readonly batches: readonly BatchObject[]; readonly hasMore: boolean }>;
}
