import type { EndpointView, ModelVersionView } from '@penstock/contract-commands';
import { toEndpointView, toModelVersionView, type CatalogQueries, type EndpointFilter, type ModelVersionFilter } from '@penstock/domain-catalog';
import type { PostgresConnection } from '../connection/connect-postgres.js';
import { endpointTable } from './endpoint-table.js';
import { modelVersionTable } from './model-version-table.js';

const options = { schema: 'registry', disableIdentityMap: true } as const;

/** Lists of the catalogue from the tables that the projection `registry` keeps. */
export class PostgresCatalogQueries implements CatalogQueries {
  constructor(private readonly connection: PostgresConnection) {}

  async modelVersions(filter: ModelVersionFilter): Promise<readonly ModelVersionView[]> {
    const where = filter.modelName === undefined ? {} : { modelName: filter.modelName };
    const rows = await this.connection.query((manager) => manager.find(modelVersionTable, where, { ...options, orderBy: { sequence: 'desc' }, limit: filter.limit }));
    return rows.map((row) => toModelVersionView(row.state));
  }

  async endpoints(filter: EndpointFilter): Promise<readonly EndpointView[]> {
    const where = filter.includeRetired ? {} : { status: 'active' as const };
    const rows = await this.connection.query((manager) => manager.find(endpointTable, where, { ...options, orderBy: { sequence: 'desc' }, limit: filter.limit }));
    return rows.map((row) => toEndpointView(row.state));
  }
}
