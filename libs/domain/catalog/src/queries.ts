import type { EndpointView, ModelVersionView } from '@penstock/contract-commands';

export interface ModelVersionFilter {
  readonly modelName?: string | undefined;
  readonly limit: number;
}

export interface EndpointFilter {
  readonly includeRetired: boolean;
  readonly limit: number;
}

/** Lists of the catalogue out of a database. Rejects when the database does not answer. */
export interface CatalogQueries {
  /** Newest first. */
  modelVersions(filter: ModelVersionFilter): Promise<readonly ModelVersionView[]>;
  /** Newest first. */
  endpoints(filter: EndpointFilter): Promise<readonly EndpointView[]>;
}
