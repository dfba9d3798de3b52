import type { FleetQueries } from '@penstock/domain-lifecycle';
import type { Optimiser } from '@penstock/domain-placement';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

export interface SchedulerPorts extends ServicePorts, ProjectionPorts {
  /** The fleet out of the database. The memory answers where it is left out or down. */
  readonly queries?: FleetQueries | undefined;
  /** Solves the integer programs of repacks. Left out, running replicas are moved for drains and MIG only. */
  readonly optimiser?: Optimiser | undefined;
}
