import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

const milliseconds = (byDefault: number) => z.coerce.number().int().min(10).max(86_400_000).default(byDefault);

/** Settings of a service that drives replicas on many nodes. */
export const replicaDriverConfig = serviceConfig.extend({
  HEARTBEAT_INTERVAL_MS: milliseconds(2_000),
  TELEMETRY_INTERVAL_MS: milliseconds(1_000),
  RECONCILE_INTERVAL_MS: milliseconds(2_000),
  /** A node that is not ready for this long is lost; shorter pauses are forgiven. */
  NODE_GRACE_MS: milliseconds(5_000),
  /** What was there and is not shown any more counts as gone after this long: a fresh object may not be shown yet. */
  VANISHED_GRACE_MS: milliseconds(5_000),
  /** A replica that cannot go on by itself fails after this long. */
  BLOCKED_GRACE_MS: milliseconds(30_000),
  /** How long the first real generation may take. */
  WARM_UP_TIMEOUT_MS: milliseconds(120_000),
  /** How long a draining replica waits for its last requests. */
  REPLICA_DRAIN_TIMEOUT_MS: milliseconds(300_000),
});
export type ReplicaDriverConfig = z.output<typeof replicaDriverConfig>;
