import type { ScalingQueries } from '@penstock/domain-scaling';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

export interface AutoscalerPorts extends ServicePorts, ProjectionPorts {
  /** Decisions out of the database. The memory answers where it is left out or down. */
  readonly queries?: ScalingQueries | undefined;
}
