import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

/** Settings of the autoscaler. */
export const autoscalerConfig = serviceConfig.extend({
  EVALUATE_INTERVAL_MS: z.coerce.number().int().min(100).max(60_000).default(1_000),
  /** Load that is older than this counts as unknown, and unknown load scales nothing down. */
  LOAD_FRESH_MS: z.coerce.number().int().min(1_000).max(600_000).default(10_000),
});
export type AutoscalerConfig = z.output<typeof autoscalerConfig>;
