import { platformEngineOptions } from '@penstock/domain-catalog';
import { EngineStartError, type EngineStartSpec } from '@penstock/domain-serving';
import type { z } from 'zod';

/** Checks the endpoint's engine options against what the engine knows. Throws {@link EngineStartError} that names each wrong one. */
export function parseEngineOptions<Schema extends z.ZodType>(schema: Schema, spec: EngineStartSpec): z.output<Schema> {
  const forEngine = Object.entries(spec.options).filter(([name]) => !(platformEngineOptions as readonly string[]).includes(name));
  const parsed = schema.safeParse(Object.fromEntries(forEngine));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'engine_options'}: ${issue.message}`);
  throw new EngineStartError('engine_exited', `The engine was not started, since its options are wrong: ${problems.join('; ')}. Deploy the endpoint with right engine_options.`);
}
