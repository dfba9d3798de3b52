import { createMetrics, startService, type RunningService } from '@penstock/feature-shell';
import { Gauge } from 'prom-client';
import type { ReplicaDriverConfig } from './driver-config.js';
import type { ReplicaDriverPorts } from './driver-ports.js';
import { ReplicaDriverModule } from './replica-driver.module.js';
import { runReplicaDriver } from './run-replica-driver.js';

/** Starts the service that acts on placements through a driver. When it stops, what it started goes on. */
export async function startReplicaDriver(config: ReplicaDriverConfig, ports: ReplicaDriverPorts): Promise<RunningService> {
  const { driver } = ports;
  const running = await runReplicaDriver(config, ports);
  const metrics = createMetrics('replica-driver');
  new Gauge({
    name: 'penstock_replica_driver_nodes', help: 'Nodes that the driver stands for, by readiness', labelNames: ['ready'], registers: [metrics],
    collect() {
      this.reset();
      for (const node of driver.nodes()) this.inc({ ready: String(node.isReady) });
    },
  });
  new Gauge({
    name: 'penstock_replica_driver_replicas', help: 'What exists of replicas, by phase', labelNames: ['phase'], registers: [metrics],
    collect() {
      this.reset();
      for (const replica of driver.replicas()) this.inc({ phase: replica.phase });
    },
  });
  new Gauge({
    name: 'penstock_replica_driver_count', help: 'What the driver counted since its start', labelNames: ['of'], registers: [metrics],
    collect() {
      for (const [of, value] of Object.entries(driver.counters())) this.set({ of }, value);
    },
  });
  try {
    return await startService({ name: 'replica-driver', module: ReplicaDriverModule, metrics, onClose: () => running.close() }, config, ports);
  } catch (error) {
    await running.close();
    throw error;
  }
}
