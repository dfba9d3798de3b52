import { EntitySchema } from '@mikro-orm/postgresql';
import { evolveFile, isFileEvent, type FileState } from '@penstock/domain-batching';
import { foldTable } from '../projection/table-projection.js';
import { keyText, wholeNumber } from '../table-columns.js';

export interface FileRow {
  readonly fileId: string;
  readonly organisationId: string;
  readonly purpose: string;
  readonly isDeleted: boolean;
  /** Position in the stream of its upload. */
  readonly sequence: number;
  readonly state: FileState;
}

export const fileTable = new EntitySchema<FileRow>({
  name: 'FileRow',
  tableName: 'files',
  schema: '*',
  properties: {
    fileId: { type: 'text', ...keyText, primary: true },
    organisationId: { type: 'text' },
    purpose: { type: 'text' },
    isDeleted: { type: 'boolean' },
    sequence: wholeNumber,
    state: { type: 'json' },
  },
  indexes: [{ name: 'files_by_organisation', properties: ['organisationId', 'sequence'] }],
});

export const fileFold = foldTable<FileRow>({
  table: fileTable,
  key: 'fileId',
  keyOf: (event) => (isFileEvent(event) ? event.data.fileId : undefined),
  fold(row, event) {
    if (!isFileEvent(event)) return row;
    const state = evolveFile(row?.state ?? null, event);
    if (state === null || state === row?.state) return row;
    return {
      fileId: state.fileId,
      organisationId: state.organisationId,
      purpose: state.purpose,
      isDeleted: state.isDeleted,
      sequence: row?.sequence ?? event.sequence,
      state,
    };
  },
});
