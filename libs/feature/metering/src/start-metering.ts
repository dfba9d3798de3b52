import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import type { MeteringConfig } from './metering-config.js';
import { createUsageMetrics } from './metering-metrics.js';
import type { MeteringPorts } from './metering-ports.js';
import { MeteringModule } from './metering.module.js';
import { UsageBatcher } from './usage-batcher.js';

/** Starts the metering service: usage events into ClickHouse, and reports out of it. */
export async function startMetering(config: MeteringConfig, ports: MeteringPorts): Promise<RunningService> {
  const metrics = createMetrics('metering');
  const batcher = new UsageBatcher({
    sink: ports.sink,
    timers: ports.timers,
    logger: ports.logger.child({ service: 'metering' }),
    metrics: createUsageMetrics(metrics),
    flushRecords: config.USAGE_FLUSH_RECORDS,
    flushDelayMs: config.USAGE_FLUSH_DELAY_MS,
  });
  const probes = [...(ports.probes ?? []), { name: 'usage-store', check: () => Promise.resolve(batcher.check()) }];
  return startService({ name: 'metering', module: MeteringModule.with(ports, batcher), metrics, onDrain: () => batcher.drain() }, config, { ...ports, probes });
}
