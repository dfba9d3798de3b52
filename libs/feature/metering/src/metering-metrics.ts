import { Counter, Gauge, type Registry } from 'prom-client';

/** What the batcher counts. */
export interface UsageMetrics {
  readonly written: Counter;
  readonly failures: Counter;
  readonly pending: Gauge;
}

export function createUsageMetrics(registry: Registry): UsageMetrics {
  const registers = [registry];
  return {
    written: new Counter({ name: 'penstock_usage_records_written_total', help: 'Usage records that are stored in ClickHouse, redeliveries included.', registers }),
    failures: new Counter({ name: 'penstock_usage_write_failures_total', help: 'Inserts of usage that failed and are tried again.', registers }),
    pending: new Gauge({ name: 'penstock_usage_records_pending', help: 'Usage records that wait to be stored.', registers }),
  };
}
