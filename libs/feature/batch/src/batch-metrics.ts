import type { BatchState } from '@penstock/domain-batching';
import { isUnfinished } from '@penstock/domain-batching';
import type { LiveProjection } from '@penstock/kernel';
import { Counter, Gauge, type Registry } from 'prom-client';

export interface BatchMetrics {
  readonly lines: Counter<'outcome'>;
  readonly retries: Counter;
  readonly chunksDiscarded: Counter;
}

export function createBatchMetrics(registry: Registry, live: LiveProjection<BatchState>): BatchMetrics {
  const registers = [registry];
  new Gauge({
    name: 'penstock_batch_jobs_unfinished', help: 'Batch jobs that are not at their end.', registers,
    collect() {
      this.set([...live.state().jobs.values()].filter(isUnfinished).length);
    },
  });
  return {
    lines: new Counter({ name: 'penstock_batch_lines_total', help: 'Lines of batch jobs by outcome: succeeded, failed or unanswered.', labelNames: ['outcome'], registers }),
    retries: new Counter({ name: 'penstock_batch_line_retries_total', help: 'Requests of batch lines that were sent again.', registers }),
    chunksDiscarded: new Counter({ name: 'penstock_batch_chunks_discarded_total', help: 'Chunks whose result another worker had written first.', registers }),
  };
}
