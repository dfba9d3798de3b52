import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import type { BatchConfig } from './batch-config.js';
import { BatchModule } from './batch.module.js';
import type { BatchPorts } from './batch-ports.js';
import { runBatches } from './run-batches.js';

/** Starts the batch service: files and batch jobs, and the work on the jobs. */
export async function startBatch(config: BatchConfig, ports: BatchPorts): Promise<RunningService> {
  const metrics = createMetrics('batch');
  const batches = await runBatches(config, ports, metrics);
  try {
    return await startService({
      name: 'batch',
      module: BatchModule.with(ports, batches.files, batches.jobs),
      metrics,
      onDrain: () => batches.drain(),
      onClose: () => batches.close(),
    }, config, ports);
  } catch (error) {
    await batches.close();
    throw error;
  }
}
