import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

const milliseconds = (byDefault: number) => z.coerce.number().int().min(100).max(86_400_000).default(byDefault);

/** Settings of the scheduler. Every time-out ends a phase that stands still; a start that goes on is never cut. */
export const schedulerConfig = serviceConfig.extend({
  /** A node whose heartbeats are missing this long is lost. */
  HEARTBEAT_TIMEOUT_MS: milliseconds(10_000),
  RECONCILE_INTERVAL_MS: milliseconds(1_000),
  /** How often moves are looked for that make the fleet cheaper; 0 never moves a replica that runs well. */
  REPACK_INTERVAL_MS: z.coerce.number().int().min(0).max(86_400_000).default(300_000),
  /** The agent has to take up a placement within this time. */
  PLACED_TIMEOUT_MS: milliseconds(120_000),
  /** A pull without any progress for this long has failed. */
  PULL_STALL_TIMEOUT_MS: milliseconds(300_000),
  LOAD_TIMEOUT_MS: milliseconds(1_800_000),
  WARM_UP_TIMEOUT_MS: milliseconds(600_000),
  DRAIN_STUCK_TIMEOUT_MS: milliseconds(3_600_000),
});
export type SchedulerConfig = z.output<typeof schedulerConfig>;
