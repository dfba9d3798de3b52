import type { TableProjection } from '../projection/table-projection.js';
import { decisionFold } from './decision-table.js';

/** Every decision with its reason, for the autoscaler. */
export const scalingTableProjection: TableProjection = {
  name: 'scaling',
  version: 1,
  schema: 'scaling',
  streams: ['EV_SCALING'],
  tables: [decisionFold],
};
