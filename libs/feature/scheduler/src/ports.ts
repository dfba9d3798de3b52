import type { FleetQueries } from '@penstock/domain-lifecycle';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

export interface SchedulerPorts extends ServicePorts, ProjectionPorts {
  /** The fleet out of the database. The memory answers where it is left out or down. */
  readonly queries?: FleetQueries | undefined;
}
