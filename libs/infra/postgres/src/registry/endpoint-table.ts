import { EntitySchema } from '@mikro-orm/postgresql';
import { evolveEndpoint, isEndpointEvent, type EndpointState } from '@penstock/domain-catalog';
import { foldTable } from '../projection/table-projection.js';
import { instantColumn, keyText, wholeNumber } from '../table-columns.js';

export interface EndpointRow {
  readonly endpointId: string;
  readonly name: string;
  readonly organisationId: string | null;
  readonly modelVersionId: string;
  readonly status: EndpointState['status'];
  /** Position in the stream of its deployment. */
  readonly sequence: number;
  readonly createdAt: Date;
  readonly state: EndpointState;
}

export const endpointTable = new EntitySchema<EndpointRow>({
  name: 'EndpointRow',
  tableName: 'endpoints',
  schema: '*',
  properties: {
    endpointId: { type: 'text', ...keyText, primary: true },
    name: { type: 'text' },
    organisationId: { type: 'text', nullable: true },
    modelVersionId: { type: 'text' },
    status: { type: 'text' },
    sequence: wholeNumber,
    createdAt: { type: 'datetime', ...instantColumn },
    state: { type: 'json' },
  },
  indexes: [{ name: 'endpoints_by_sequence', properties: ['status', 'sequence'] }],
});

export const endpointFold = foldTable<EndpointRow>({
  table: endpointTable,
  key: 'endpointId',
  keyOf: (event) => (isEndpointEvent(event) ? event.data.endpointId : undefined),
  fold(row, event) {
    if (!isEndpointEvent(event)) return row;
    const atMs = Date.parse(event.time);
    const state = evolveEndpoint(row?.state, event, atMs);
    if (state === undefined || state === row?.state) return row;
    return {
      endpointId: state.endpointId,
      name: state.name,
      organisationId: state.organisationId,
      modelVersionId: state.modelVersionId,
      status: state.status,
      sequence: row?.sequence ?? event.sequence,
      createdAt: row?.createdAt ?? new Date(atMs),
      state,
    };
  },
});
