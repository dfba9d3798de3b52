import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

export const registryConfig = serviceConfig.extend({
  /** Submitted model versions are looked for at least this often, whatever changed. */
  RECONCILE_INTERVAL_MS: z.coerce.number().int().min(100).max(600_000).default(10_000),
});
export type RegistryConfig = z.infer<typeof registryConfig>;
