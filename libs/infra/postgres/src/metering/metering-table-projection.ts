import type { TableProjection } from '../projection/table-projection.js';
import { usageLedgerFold } from './usage-ledger-table.js';

/** The usage ledger, for metering. */
export const meteringTableProjection: TableProjection = {
  name: 'metering',
  version: 1,
  schema: 'metering',
  streams: ['EV_USAGE'],
  tables: [usageLedgerFold],
};
