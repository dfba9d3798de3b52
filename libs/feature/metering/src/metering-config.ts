import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

/** Settings of the metering service. */
export const meteringConfig = serviceConfig.extend({
  /** An insert takes at most this many records… */
  USAGE_FLUSH_RECORDS: z.coerce.number().int().min(1).max(10_000).default(500),
  /** …and a record waits at most this long for others to join it. */
  USAGE_FLUSH_DELAY_MS: z.coerce.number().int().min(1).max(60_000).default(200),
});
export type MeteringConfig = z.output<typeof meteringConfig>;
