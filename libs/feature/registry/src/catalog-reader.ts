import type { EndpointView, ModelVersionView } from '@penstock/contract-commands';
import { listEndpointViews, listModelVersionViews, type CatalogQueries, type CatalogState, type EndpointFilter, type ModelVersionFilter } from '@penstock/domain-catalog';
import type { Logger } from '@penstock/kernel';

/** Lists of the catalogue: the database answers; while it cannot, the memory does, which knows fewer retired endpoints. */
export class CatalogReader {
  constructor(private readonly catalog: { state(): CatalogState }, private readonly queries: CatalogQueries | undefined, private readonly logger: Logger) {}

  modelVersions(filter: ModelVersionFilter): Promise<readonly ModelVersionView[]> {
    return this.read((queries) => queries.modelVersions(filter), (state) => listModelVersionViews(state, filter));
  }

  endpoints(filter: EndpointFilter): Promise<readonly EndpointView[]> {
    return this.read((queries) => queries.endpoints(filter), (state) => listEndpointViews(state, filter));
  }

  private async read<Result>(fromDatabase: (queries: CatalogQueries) => Promise<Result>, fromMemory: (state: CatalogState) => Result): Promise<Result> {
    if (this.queries === undefined) return fromMemory(this.catalog.state());
    try {
      return await fromDatabase(this.queries);
    } catch (error) {
      this.logger.warn({ err: error }, 'the database does not answer; the catalogue is told from memory');
      return fromMemory(this.catalog.state());
    }
  }
}
