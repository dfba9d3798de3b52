import { catalogProjection } from '@penstock/domain-catalog';
import { fleetProjection } from '@penstock/domain-lifecycle';
import { scalingProjection } from '@penstock/domain-scaling';
import { ReconcileLoop } from '@penstock/feature-shell';
import type { ReplicaDriverConfig } from './driver-config.js';
import type { ReplicaDriverPorts } from './driver-ports.js';
import { EngineWatch } from './engine-watch.js';
import { FleetFacts } from './fleet-facts.js';
import { GeometryController } from './geometry-controller.js';
import { NodeReporter } from './node-reporter.js';
import { ReplicaController } from './replica-controller.js';

export interface RunningReplicaDriver {
  /** Ends timers, subscriptions and the driver. What runs goes on: the next driver takes it over. */
  close(): Promise<void>;
}

/** Everything of the service except its HTTP server. */
export async function runReplicaDriver(config: ReplicaDriverConfig, ports: ReplicaDriverPorts): Promise<RunningReplicaDriver> {
  const logger = ports.logger.child({ service: 'replica-driver', driver: ports.driver.kind });
  const fleet = await ports.follow(fleetProjection);
  const catalog = await ports.follow(catalogProjection);
  const scaling = await ports.follow(scalingProjection);
  const facts = new FleetFacts(ports.log, fleet, ports.clock, ports.ids, `penstock/driver-${ports.driver.kind}`);
  const nodes = new NodeReporter({ config, ports, fleet, facts, logger });
  const engines = new EngineWatch(config, ports, fleet);
  const holder: { loop?: ReconcileLoop } = {};
  const controller = new ReplicaController({ config, ports, fleet, catalog, scaling, facts, engines, logger, onSettled: () => holder.loop?.trigger() });
  const geometries = new GeometryController({ ports, fleet, facts, logger, onSettled: () => holder.loop?.trigger() });
  const loop = new ReconcileLoop({
    timers: ports.timers, logger, intervalMs: config.RECONCILE_INTERVAL_MS,
    reconcile: async () => {
      if (!ports.driver.isSynced() || !facts.isCaughtUp()) return;
      await nodes.report();
      await controller.reconcile();
      geometries.reconcile();
    },
  });
  holder.loop = loop;
  const stops = [
    fleet.onChange(loop.trigger), catalog.onChange(loop.trigger), scaling.onChange(loop.trigger), ports.driver.onChange(loop.trigger),
    ports.timers.every(config.HEARTBEAT_INTERVAL_MS, () => nodes.heartbeat()),
    ports.timers.every(config.TELEMETRY_INTERVAL_MS, () => engines.sample()),
  ];
  nodes.heartbeat();
  loop.start();
  return {
    close: async () => {
      for (const stop of stops) stop();
      await loop.close();
      await ports.driver.close();
      await Promise.all([fleet.close(), catalog.close(), scaling.close()]);
    },
  };
}
