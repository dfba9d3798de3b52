import { serviceConfig } from '@penstock/feature-shell';
import type { Logger } from '@penstock/kernel';
import { createPinoLogger } from '@penstock/infra-telemetry';
import { z } from 'zod';
import { readSettings, type Environment } from './settings.js';

const logConfig = z.object({
  LOG_LEVEL: serviceConfig.shape.LOG_LEVEL,
  /** A file for the log; standard error when left out. */
  LOG_FILE: z.string().optional(),
});

/** Log lines of all services of one process share a stream; each line names its service. */
const loggers = new Map<string, Logger>();

/** The logger of one service, on the stream that the environment names. */
export function createServiceLogger(service: string, environment: Environment): Logger {
  const config = readSettings(logConfig, environment);
  const key = `${config.LOG_LEVEL}:${config.LOG_FILE ?? ''}`;
  let shared = loggers.get(key);
  if (shared === undefined) {
    shared = createPinoLogger({ level: config.LOG_LEVEL, file: config.LOG_FILE });
    loggers.set(key, shared);
  }
  return shared.child({ service });
}
