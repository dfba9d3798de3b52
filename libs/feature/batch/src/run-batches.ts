import { batchProjection, type BatchState } from '@penstock/domain-batching';
import type { LiveProjection } from '@penstock/kernel';
import type { Registry } from 'prom-client';
import type { BatchConfig } from './batch-config.js';
import { createBatchMetrics } from './batch-metrics.js';
import type { BatchPorts } from './batch-ports.js';
import { FileDesk } from './file-desk.js';
import { GatewayLineClient } from './gateway-line-client.js';
import { JobDesk } from './job-desk.js';
import { JobReactor } from './job-reactor.js';
import { JobRunner } from './job-runner.js';
import { LineRunner } from './line-runner.js';
import { LineSlots } from './line-slots.js';

export interface RunningBatches {
  readonly live: LiveProjection<BatchState>;
  readonly files: FileDesk;
  readonly jobs: JobDesk;
  /** Begins no further line and waits for those under way. */
  drain(): Promise<void>;
  /** Breaks off what still runs, and closes. */
  close(): Promise<void>;
}

/** Everything of the batch service except its servers. */
export async function runBatches(config: BatchConfig, ports: BatchPorts, registry: Registry): Promise<RunningBatches> {
  const logger = ports.logger.child({ service: 'batch' });
  const live = await ports.follow(batchProjection);
  const metrics = createBatchMetrics(registry, live);
  const abort = new AbortController();
  const state = { isDraining: false };
  const client = new GatewayLineClient({ gatewayUrl: config.GATEWAY_URL, internalToken: config.INTERNAL_TOKEN, concurrency: config.BATCH_LINE_CONCURRENCY, timeoutMs: config.BATCH_LINE_TIMEOUT_MS });
  const shared = {
    ports, live, metrics,
    lines: new LineRunner({ client, timers: ports.timers, logger, metrics }),
    slots: new LineSlots(config.BATCH_LINE_CONCURRENCY),
    workerId: ports.ids.next('inst'),
    isDraining: () => state.isDraining,
    signal: abort.signal,
  };
  const reactor = new JobReactor({ ports, live, logger, intervalMs: config.BATCH_RECONCILE_INTERVAL_MS, runJob: (batchId) => new JobRunner(batchId, shared).run() });
  const files = new FileDesk(ports, live);
  const jobs = new JobDesk(ports, live, files, (batchId) => reactor.claim(batchId));
  reactor.start();
  const drain = (): Promise<void> => {
    state.isDraining = true;
    return reactor.drain();
  };
  return {
    live, files, jobs, drain,
    close: async () => {
      abort.abort(new Error('the batch service stops'));
      await drain();
      await client.close();
      await live.close();
    },
  };
}
