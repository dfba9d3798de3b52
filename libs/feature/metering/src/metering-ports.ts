import type { UsageReports, UsageSink } from '@penstock/domain-usage';
import type { ProjectionPorts, ServicePorts } from '@penstock/feature-shell';

/**
 * `eventTransports` must hold the consumer of `EV_USAGE` that is called `metering-usage`. Its in-flight limit is how many
 * records may wait for ClickHouse, so it should be some thousands.
 */
export interface MeteringPorts extends ServicePorts, ProjectionPorts {
  readonly sink: UsageSink;
  readonly reports: UsageReports;
}
