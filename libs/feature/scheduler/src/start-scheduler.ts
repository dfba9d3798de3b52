import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { registerCommitmentMetrics } from './commitments/commitment-metrics.js';
import type { SchedulerConfig } from './config.js';
import { registerFleetMetrics } from './fleet-metrics.js';
import type { SchedulerPorts } from './ports.js';
import { runScheduling } from './run-scheduling.js';
import { SchedulerModule } from './scheduler.module.js';

/** Starts the scheduler: places wanted replicas, drains those too many, and notices lost nodes and starts that hang. */
export async function startScheduler(config: SchedulerConfig, ports: SchedulerPorts): Promise<RunningService> {
  const scheduling = await runScheduling(config, ports);
  const metrics = createMetrics('scheduler');
  registerFleetMetrics(metrics, scheduling.fleet, scheduling.plans);
  registerCommitmentMetrics(metrics, { fleet: scheduling.fleet, book: scheduling.book, clock: ports.clock });
  try {
    return await startService({
      name: 'scheduler',
      module: SchedulerModule.with(ports, scheduling),
      metrics,
      onDrain: () => scheduling.stopDeciding(),
      onClose: () => scheduling.close(),
    }, config, ports);
  } catch (error) {
    await scheduling.close();
    throw error;
  }
}
