import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { registerCatalogMetrics } from './catalog-metrics.js';
import type { RegistryConfig } from './registry-config.js';
import type { RegistryPorts } from './registry-ports.js';
import { RegistryModule } from './registry.module.js';
import { runCatalog } from './run-catalog.js';

/** Starts the registry: takes model versions in and reads their artifacts, deploys and retires endpoints. */
export async function startRegistry(config: RegistryConfig, ports: RegistryPorts): Promise<RunningService> {
  const running = await runCatalog(config, ports);
  const metrics = createMetrics('registry');
  registerCatalogMetrics(metrics, running.catalog);
  try {
    return await startService({
      name: 'registry',
      module: RegistryModule.with(ports, running),
      metrics,
      onDrain: () => running.stopReading(),
      onClose: () => running.close(),
    }, config, ports);
  } catch (error) {
    await running.close();
    throw error;
  }
}
