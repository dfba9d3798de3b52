import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

const milliseconds = (byDefault: number) => z.coerce.number().int().min(10).max(86_400_000).default(byDefault);

/** Settings of an agent. */
export const agentConfig = serviceConfig.extend({
  /** Absolute path: logs and files of the replicas lie below it. */
  AGENT_DATA_DIR: z.string().min(1).max(4_096),
  /** `true` leaves the engines running when the agent stops, for an upgrade of the agent; the next one takes them over. */
  AGENT_KEEP_ENGINES: z.enum(['true', 'false']).default('false').transform((value) => value === 'true'),
  /** What fails together with this machine, such as its rack; left out, it fails alone. */
  AGENT_FAILURE_DOMAIN: z.string().min(1).max(200).optional(),
  /** Taints, separated by commas: only replicas whose endpoint tolerates all of them are put here. */
  AGENT_TAINTS: z.string().max(4_000).default('').transform((text) => text.split(',').map((taint) => taint.trim()).filter((taint) => taint !== '')).pipe(z.array(z.string().max(200)).max(50)),
  /** `spot` for a machine that its owner may take back at short notice. */
  AGENT_MARKET: z.enum(['on_demand', 'spot']).default('on_demand'),
  /** US dollars for each GPU and hour; left out, plans count with typical prices of the GPU's type. */
  AGENT_DOLLARS_PER_GPU_HOUR: z.coerce.number().min(0).max(100_000).optional(),
  HEARTBEAT_INTERVAL_MS: milliseconds(2_000),
  TELEMETRY_INTERVAL_MS: milliseconds(1_000),
  RECONCILE_INTERVAL_MS: milliseconds(2_000),
  /** How long the first real generation may take. */
  WARM_UP_TIMEOUT_MS: milliseconds(120_000),
  /** How long a draining replica waits for its last requests. */
  REPLICA_DRAIN_TIMEOUT_MS: milliseconds(300_000),
  /** How long an engine that was told to stop may take before it is killed. */
  ENGINE_STOP_GRACE_MS: milliseconds(5_000),
  /** How often at most each replica says what it measured under load; it stays silent while that is what it said before. */
  PROFILE_INTERVAL_MS: milliseconds(300_000),
  /** An engine whose metrics are silent, or stand still while it has requests in work, for this long is asked for one token, and ended when it cannot give it. */
  ENGINE_SILENT_TIMEOUT_MS: milliseconds(30_000),
});
export type AgentConfig = z.output<typeof agentConfig>;
