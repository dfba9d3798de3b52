import { EntitySchema } from '@mikro-orm/postgresql';
import { evolveModelVersion, isModelVersionEvent, type ModelVersionState } from '@penstock/domain-catalog';
import { foldTable } from '../projection/table-projection.js';
import { instantColumn, keyText, wholeNumber } from '../table-columns.js';

export interface ModelVersionRow {
  readonly modelVersionId: string;
  readonly modelName: string;
  readonly organisationId: string | null;
  readonly status: ModelVersionState['status'];
  /** Position in the stream of the last submission. */
  readonly sequence: number;
  readonly createdAt: Date;
  readonly state: ModelVersionState;
}

export const modelVersionTable = new EntitySchema<ModelVersionRow>({
  name: 'ModelVersionRow',
  tableName: 'model_versions',
  schema: '*',
  properties: {
    modelVersionId: { type: 'text', ...keyText, primary: true },
    modelName: { type: 'text' },
    organisationId: { type: 'text', nullable: true },
    status: { type: 'text' },
    sequence: wholeNumber,
    createdAt: { type: 'datetime', ...instantColumn },
    state: { type: 'json' },
  },
  indexes: [{ name: 'model_versions_by_sequence', properties: ['sequence'] }],
});

export const modelVersionFold = foldTable<ModelVersionRow>({
  table: modelVersionTable,
  key: 'modelVersionId',
  keyOf: (event) => (isModelVersionEvent(event) ? event.data.modelVersionId : undefined),
  fold(row, event) {
    if (!isModelVersionEvent(event)) return row;
    const atMs = Date.parse(event.time);
    const state = evolveModelVersion(row?.state, event, atMs);
    if (state === undefined || state === row?.state) return row;
    const isSubmission = event.type === 'model-version.submitted.v1' || row === undefined;
    return {
      modelVersionId: state.modelVersionId,
      modelName: state.modelName,
      organisationId: state.organisationId,
      status: state.status,
      sequence: isSubmission ? event.sequence : row.sequence,
      createdAt: isSubmission ? new Date(atMs) : row.createdAt,
      state,
    };
  },
});
