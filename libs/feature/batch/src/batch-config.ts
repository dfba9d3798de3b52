import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

/** Settings of the batch service. */
export const batchConfig = serviceConfig.extend({
  /** Base URL of the gateway, such as `http://127.0.0.1:8080`. */
  GATEWAY_URL: z.url({ protocol: /^https?$/ }),
  /** The credential that the gateway accepts for work on behalf of a tenant. */
  INTERNAL_TOKEN: z.string().min(16),
  /** Lines that run at once, over all jobs of this process. */
  BATCH_LINE_CONCURRENCY: z.coerce.number().int().min(1).max(1_024).default(4),
  /** A line without an answer after this long has failed. */
  BATCH_LINE_TIMEOUT_MS: z.coerce.number().int().min(1_000).max(3_600_000).default(600_000),
  BATCH_RECONCILE_INTERVAL_MS: z.coerce.number().int().min(10).max(600_000).default(5_000),
});
export type BatchConfig = z.output<typeof batchConfig>;
