import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { runningOf, type AdmissionState } from '@penstock/domain-routing';

const WAIT_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** What the router counts. Endpoints are labels of gauges only: they are read from the live state at each scrape. */
export class RouterMetrics {
  private readonly admissions: Counter<'outcome'>;
  private readonly waits: Histogram<'cold'>;
  private readonly expired: Counter;
  private readonly circuits: Counter<'change'>;
  private readonly wakes: Counter<'outcome'>;
  private readonly probes: Counter<'outcome'>;

  constructor(registry: Registry, states: () => Iterable<AdmissionState>) {
    const registers = [registry];
    this.admissions = new Counter({ name: 'penstock_router_admissions_total', help: 'Admissions by how they ended: granted, cancelled, or the code of the refusal.', labelNames: ['outcome'], registers });
    this.waits = new Histogram({ name: 'penstock_router_wait_seconds', help: 'How long granted requests waited for their slot.', labelNames: ['cold'], buckets: WAIT_BUCKETS_SECONDS, registers });
    this.expired = new Counter({ name: 'penstock_router_leases_expired_total', help: 'Leases that nobody gave back or renewed.', registers });
    this.circuits = new Counter({ name: 'penstock_router_circuit_changes_total', help: 'Circuits of replicas that opened or closed.', labelNames: ['change'], registers });
    this.wakes = new Counter({ name: 'penstock_router_wakes_total', help: 'Wake commands sent for cold endpoints, by outcome.', labelNames: ['outcome'], registers });
    this.probes = new Counter({ name: 'penstock_router_probes_total', help: 'One-token generations that looked whether a failed replica works again.', labelNames: ['outcome'], registers });
    gaugeOf('penstock_router_queue_depth', 'Requests that wait.', registry, states, (state) => state.waiting.size);
    gaugeOf('penstock_router_in_flight', 'Leases that are held.', registry, states, runningOf);
  }

  admissionEnded(outcome: string): void {
    this.admissions.inc({ outcome });
  }

  granted(queuedMs: number, coldStart: boolean): void {
    this.admissions.inc({ outcome: 'granted' });
    this.waits.observe({ cold: String(coldStart) }, queuedMs / 1_000);
  }

  leasesExpired(count: number): void {
    if (count > 0) this.expired.inc(count);
  }

  probed(outcome: string): void {
    this.probes.inc({ outcome });
  }

  circuitChanged(change: 'opened' | 'closed'): void {
    this.circuits.inc({ change });
  }

  woke(outcome: 'done' | 'refused' | 'unavailable'): void {
    this.wakes.inc({ outcome });
  }
}

function gaugeOf(name: string, help: string, registry: Registry, states: () => Iterable<AdmissionState>, read: (state: AdmissionState) => number): void {
  const gauge: Gauge<'endpoint'> = new Gauge({
    name,
    help,
    labelNames: ['endpoint'],
    registers: [registry],
    collect: () => {
      gauge.reset();
      for (const state of states()) gauge.set({ endpoint: state.settings.endpointId }, read(state));
    },
  });
}
