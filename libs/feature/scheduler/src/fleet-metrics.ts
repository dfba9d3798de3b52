import { isLiving, type FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import { Gauge, type Registry } from 'prom-client';

/** Gauges over the fleet, read when they are scraped. */
export function registerFleetMetrics(registry: Registry, fleet: LiveProjection<FleetState>): void {
  new Gauge({
    name: 'penstock_fleet_nodes',
    help: 'Nodes by status',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const node of fleet.state().nodes.values()) this.inc({ status: node.status });
    },
  });
  new Gauge({
    name: 'penstock_fleet_replicas',
    help: 'Living replicas by phase',
    labelNames: ['phase'],
    registers: [registry],
    collect() {
      this.reset();
      for (const replica of fleet.state().replicas.values()) if (isLiving(replica.phase)) this.inc({ phase: replica.phase });
    },
  });
  new Gauge({
    name: 'penstock_fleet_refused_endpoints',
    help: 'Endpoints with fewer replicas than wanted',
    registers: [registry],
    collect() {
      this.set(fleet.state().refusals.size);
    },
  });
}
