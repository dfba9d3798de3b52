import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

const milliseconds = (byDefault: number) => z.coerce.number().int().min(10).max(86_400_000).default(byDefault);

/** Settings of an agent. */
export const agentConfig = serviceConfig.extend({
  /** Absolute path: logs and files of the replicas lie below it. */
  AGENT_DATA_DIR: z.string().min(1).max(4_096),
  /** `true` leaves the engines running when the agent stops, for an upgrade of the agent; the next one takes them over. */
  AGENT_KEEP_ENGINES: z.enum(['true', 'false']).default('false').transform((value) => value === 'true'),
  HEARTBEAT_INTERVAL_MS: milliseconds(2_000),
  TELEMETRY_INTERVAL_MS: milliseconds(1_000),
  RECONCILE_INTERVAL_MS: milliseconds(2_000),
  /** How long the first real generation may take. */
  WARM_UP_TIMEOUT_MS: milliseconds(120_000),
  /** How long a draining replica waits for its last requests. */
  REPLICA_DRAIN_TIMEOUT_MS: milliseconds(300_000),
  /** How long an engine that was told to stop may take before it is killed. */
  ENGINE_STOP_GRACE_MS: milliseconds(5_000),
  /** An engine whose metrics are silent for this long is asked for one token, and ended when it cannot give it. */
  ENGINE_SILENT_TIMEOUT_MS: milliseconds(30_000),
});
export type AgentConfig = z.output<typeof agentConfig>;
