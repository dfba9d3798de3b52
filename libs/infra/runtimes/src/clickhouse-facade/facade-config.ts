import { z } from 'zod';

/** Environment variable in which the parent hands over {@link facadeConfig} as JSON. */
export const FACADE_CONFIG_VARIABLE = 'PENSTOCK_CLICKHOUSE_FACADE';

export const facadeConfig = z.strictObject({
  /** The `index.js` of the chdb package in the cache. */
  chdbModule: z.string(),
  dataDir: z.string(),
  port: z.int().min(1).max(65_535),
  user: z.string().min(1),
  password: z.string().min(1),
  /** Created at start. */
  database: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'letters, digits and underscores, at most 64'),
});
export type FacadeConfig = z.infer<typeof facadeConfig>;
