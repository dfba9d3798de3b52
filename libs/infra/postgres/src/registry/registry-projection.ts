import type { TableProjection } from '../projection/table-projection.js';
import { endpointFold } from './endpoint-table.js';
import { modelVersionFold } from './model-version-table.js';

/** Model versions and endpoints, for the registry. */
export const registryTableProjection: TableProjection = {
  name: 'registry',
  version: 4,
  schema: 'registry',
  streams: ['EV_REGISTRY'],
  tables: [modelVersionFold, endpointFold],
};
