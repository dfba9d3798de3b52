import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

export const routerConfig = serviceConfig.extend({
  /** How long a gateway may keep a slot without renewing its lease. */
  ROUTER_LEASE_TTL_MS: z.coerce.number().int().min(1_000).max(600_000).default(20_000),
  /** For how long a router that starts, or takes endpoints over, only listens to renewals before it lends slots. */
  ROUTER_LEARNING_MS: z.coerce.number().int().min(0).max(60_000).default(500),
});
export type RouterConfig = z.infer<typeof routerConfig>;
