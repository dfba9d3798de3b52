import { readyReplicasOf, type FleetState } from '@penstock/domain-lifecycle';
import { floorsAt, windowOf, type CommitmentBook } from '@penstock/domain-placement';
import type { Clock, LiveProjection } from '@penstock/kernel';
import { Gauge, type Registry } from 'prom-client';

/** Gauges over what was promised, read when they are scraped. */
export function registerCommitmentMetrics(registry: Registry, { fleet, book, clock }: { readonly fleet: LiveProjection<FleetState>; readonly book: LiveProjection<CommitmentBook>; readonly clock: Clock }): void {
  new Gauge({
    name: 'penstock_reservations',
    help: 'Reservations that stand, by whether they are in force',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const made of book.state().standing.values()) this.inc({ status: windowOf(made).beginMs > clock.now() ? 'planned' : 'in-force' });
    },
  });
  new Gauge({
    name: 'penstock_promised_replicas',
    help: 'Replicas that reservations in force keep',
    registers: [registry],
    collect() {
      this.set([...floorsAt(book.state(), clock.now()).values()].reduce((sum, { replicas }) => sum + replicas, 0));
    },
  });
  new Gauge({
    name: 'penstock_promised_replicas_missing',
    help: 'Promised replicas that do not take traffic now',
    registers: [registry],
    collect() {
      this.set([...floorsAt(book.state(), clock.now())].reduce((sum, [endpointId, { replicas }]) => sum + Math.max(0, replicas - readyReplicasOf(fleet.state(), endpointId).length), 0));
    },
  });
}
