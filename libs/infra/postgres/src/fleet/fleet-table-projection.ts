import type { TableProjection } from '../projection/table-projection.js';
import { nodeFold } from './node-table.js';
import { replicaFold } from './replica-table.js';

/** Nodes and replicas, for the scheduler. */
export const fleetTableProjection: TableProjection = {
  name: 'fleet',
  version: 2,
  schema: 'fleet',
  streams: ['EV_FLEET'],
  tables: [nodeFold, replicaFold],
};
