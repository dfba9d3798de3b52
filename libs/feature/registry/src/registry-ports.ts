import type { ArtifactInspector, CatalogQueries } from '@penstock/domain-catalog';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

export interface RegistryPorts extends ServicePorts, ProjectionPorts {
  readonly inspector: ArtifactInspector;
  /** The catalogue out of the database. The memory answers where it is left out or down. */
  readonly queries?: CatalogQueries | undefined;
}
