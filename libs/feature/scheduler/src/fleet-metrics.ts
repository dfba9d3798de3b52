import { isLiving, isStarting, type FleetState } from '@penstock/domain-lifecycle';
import type { LiveProjection } from '@penstock/kernel';
import { Gauge, type Registry } from 'prom-client';
import type { PlanWatch } from './plan-watch.js';

/** Gauges over the fleet, read when they are scraped. */
export function registerFleetMetrics(registry: Registry, fleet: LiveProjection<FleetState>, plans: PlanWatch): void {
  const gauge = (name: string, help: string, read: () => number | undefined): void => {
    new Gauge({
      name, help, registers: [registry],
      collect() {
        const value = read();
        if (value === undefined) this.reset();
        else this.set(value);
      },
    });
  };
  gauge('penstock_fleet_dollars_per_hour', 'Price of the accelerators in use, where prices are known', () => plans.lastCost()?.dollarsPerHour);
  gauge('penstock_fleet_lower_bound_dollars_per_hour', 'No plan for the same replicas costs less', () => plans.lastCost()?.lowerBoundDollarsPerHour);
  gauge('penstock_fleet_repack_gain_dollars', 'What the last repack saves over its horizon, less its drains', () => plans.lastRepackGain());
  gauge('penstock_fleet_moving_replicas', 'Replicas that start in the place of others', () => [...fleet.state().replicas.values()].filter((replica) => replica.replaces !== null && isStarting(replica.phase)).length);
  gauge('penstock_fleet_mig_changes', 'Changes of MIG geometry under way', () => [...fleet.state().geometries.values()].filter((geometry) => geometry.change !== null).length);
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
