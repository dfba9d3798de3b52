import { EntitySchema } from '@mikro-orm/postgresql';
import type { WantedReplicasChangedV1 } from '@penstock/contract-events';
import { foldTable } from '../projection/table-projection.js';
import { instantColumn, keyText, wholeNumber } from '../table-columns.js';

export interface DecisionRow {
  readonly eventId: string;
  readonly endpointId: string;
  readonly sequence: number;
  readonly decidedAt: Date;
  readonly decision: WantedReplicasChangedV1;
}

export const decisionTable = new EntitySchema<DecisionRow>({
  name: 'DecisionRow',
  tableName: 'decisions',
  schema: '*',
  properties: {
    eventId: { type: 'text', ...keyText, primary: true },
    endpointId: { type: 'text' },
    sequence: wholeNumber,
    decidedAt: { type: 'datetime', ...instantColumn },
    decision: { type: 'json' },
  },
  indexes: [
    { name: 'decisions_by_sequence', properties: ['sequence'] },
    { name: 'decisions_by_endpoint', properties: ['endpointId', 'sequence'] },
  ],
});

export const decisionFold = foldTable<DecisionRow>({
  table: decisionTable,
  key: 'eventId',
  keyOf: (event) => (event.type === 'wanted-replicas.changed.v1' ? event.id : undefined),
  fold(row, event) {
    if (event.type !== 'wanted-replicas.changed.v1' || row !== undefined) return row;
    return { eventId: event.id, endpointId: event.data.endpointId, sequence: event.sequence, decidedAt: new Date(event.time), decision: event.data };
  },
});
