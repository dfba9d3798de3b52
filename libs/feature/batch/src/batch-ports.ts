import type { BatchQueries, ObjectStore } from '@penstock/domain-batching';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

export interface BatchPorts extends ServicePorts, ProjectionPorts {
  /** Where inputs, results and checkpoints lie. */
  readonly objects: ObjectStore;
  /** Lists out of the database. The memory answers where it is left out or down. */
  readonly queries?: BatchQueries | undefined;
}
