import { EntitySchema } from '@mikro-orm/postgresql';
import type { RecordedEvent } from '@penstock/kernel';
import { foldTable, type TableProjection } from '../projection/table-projection.js';
import { keyText, wholeNumber } from '../table-columns.js';

/** How often each endpoint was scaled: a fold that shows at once when an event is applied twice, or not at all. */
export interface TallyRow {
  readonly endpointId: string;
  readonly times: number;
  readonly sum: number;
  readonly lastReason: string;
}

export const tallyTable = new EntitySchema<TallyRow>({
  name: 'TallyRow',
  tableName: 'tally',
  schema: '*',
  properties: {
    endpointId: { type: 'text', ...keyText, primary: true },
    times: wholeNumber,
    sum: wholeNumber,
    lastReason: { type: 'text' },
  },
});

/** A reason that this fold cannot take. */
export const POISON_REASON = 'poison';

export function tallyProjection(name: string, version = 1): TableProjection {
  return {
    name,
    version,
    schema: 'scaling',
    streams: ['EV_SCALING'],
    tables: [foldTable<TallyRow>({
      table: tallyTable,
      key: 'endpointId',
      keyOf: (event) => (event.type === 'wanted-replicas.changed.v1' ? event.data.endpointId : undefined),
      fold(row, event) {
        if (event.type !== 'wanted-replicas.changed.v1') return row;
        if (event.data.reason === POISON_REASON) throw new Error('this fold does not like the event');
        return { endpointId: event.data.endpointId, times: (row?.times ?? 0) + 1, sum: (row?.sum ?? 0) + event.data.to * version, lastReason: event.data.reason };
      },
    })],
  };
}

/** What the table must hold after these events. */
export function expectedTally(events: readonly RecordedEvent[], isSkipped: (reason: string) => boolean = () => false): readonly TallyRow[] {
  const rows = new Map<string, TallyRow>();
  for (const event of events) {
    const data = event.data as { readonly endpointId: string; readonly to: number; readonly reason: string };
    if (isSkipped(data.reason)) continue;
    const row = rows.get(data.endpointId);
    rows.set(data.endpointId, { endpointId: data.endpointId, times: (row?.times ?? 0) + 1, sum: (row?.sum ?? 0) + data.to, lastReason: data.reason });
  }
  return [...rows.values()].sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
}
