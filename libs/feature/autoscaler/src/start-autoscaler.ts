import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { Gauge } from 'prom-client';
import { AutoscalerModule } from './autoscaler.module.js';
import type { AutoscalerConfig } from './config.js';
import type { AutoscalerPorts } from './ports.js';
import { runAutoscaling } from './run-autoscaling.js';

/** Starts the autoscaler: keeps the wanted number of replicas of every endpoint, and wakes sleeping ones. */
export async function startAutoscaler(config: AutoscalerConfig, ports: AutoscalerPorts): Promise<RunningService> {
  const autoscaling = await runAutoscaling(config, ports);
  const metrics = createMetrics('autoscaler');
  new Gauge({
    name: 'penstock_wanted_replicas',
    help: 'Replicas that all endpoints together should have',
    registers: [metrics],
    collect() {
      this.set([...autoscaling.scaling.state().wanted.values()].reduce((sum, wanted) => sum + wanted.replicas, 0));
    },
  });
  try {
    return await startService({
      name: 'autoscaler',
      module: AutoscalerModule.with(ports, autoscaling),
      metrics,
      onDrain: () => autoscaling.stopDeciding(),
      onClose: () => autoscaling.close(),
    }, config, ports);
  } catch (error) {
    await autoscaling.close();
    throw error;
  }
}
