import { readFileSync } from 'node:fs';
import { loadConfig } from '@penstock/feature-shell';
import type { z } from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads settings from the environment, or from the files that `NAME_FILE` variables name. */
export function readSettings<Schema extends z.ZodObject>(schema: Schema, environment: Environment): z.output<Schema> {
  return loadConfig(schema, environment, (path) => readFileSync(path, 'utf8'));
}
