import { z } from 'zod';

/** The settings every service has. Names in the environment are upper-case with underscores. */
export const serviceConfig = z.object({
  /** Loopback unless told otherwise. */
  HTTP_HOST: z.string().default('127.0.0.1'),
  /** 0 takes a free port. */
  HTTP_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** True for one of several processes that share a port; the kernel spreads connections over them. */
  HTTP_REUSE_PORT: z.stringbool().default(false),
  /** How long a service that stops waits for what is in flight. */
  DRAIN_TIMEOUT_MS: z.coerce.number().int().min(0).max(600_000).default(15_000),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
});
export type ServiceConfig = z.infer<typeof serviceConfig>;

/** A setting is missing or wrong. The message names each variable, what is wrong with it and nothing of its value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the settings of one service from the environment, once. `NAME_FILE` names a file that holds the value of `NAME`,
 * as orchestrators mount secrets. Throws {@link ConfigError}.
 */
export function loadConfig<Schema extends z.ZodObject>(schema: Schema, environment: Readonly<Record<string, string | undefined>>, readFile?: (path: string) => string): z.output<Schema> {
  const values: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const file = environment[`${name}_FILE`];
    const value = file !== undefined && readFile !== undefined ? readFile(file).trim() : environment[name];
    if (value !== undefined && value !== '') values[name] = value;
  }
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data as z.output<Schema>;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new ConfigError(`Set these environment variables right and start again: ${problems.join('; ')}`);
}
