import type { RunningService } from '@penstock/feature-shell';
import { startTracing } from '@penstock/infra-telemetry';
import { z } from 'zod';
import { readSettings, type Environment } from './settings.js';

const tracingConfig = z.object({
  /** Base URL of an OTLP/HTTP collector; trace ids still travel without one. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.string().optional(),
  /** Share of new traces that are kept, 0 to 1. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).optional(),
});

/** Starts tracing for this process. */
export function startProcessTracing(serviceName: string, environment: Environment): { stop(): Promise<void> } {
  const config = readSettings(tracingConfig, environment);
  return startTracing({ serviceName, otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT, sampleRatio: config.OTEL_TRACES_SAMPLER_ARG });
}

/** The signal that asked this process to stop; a second one ends it at once. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130);
        asked = true;
        resolve(signal);
      });
    }
  });
}

/** How often a process that must not outlive another one looks for it. */
const PARENT_CHECK_MS = 1_000;

/** Resolves when the process that started this one is gone; never when it is not to be watched. */
function parentGone(parentPid: string | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (parentPid === undefined) return;
    const timer = setInterval(() => {
      try {
        process.kill(Number(parentPid), 0);
      } catch {
        clearInterval(timer);
        resolve();
      }
    }, PARENT_CHECK_MS).unref();
  });
}

/** The whole life of a process that runs one service: start, wait for a signal, drain. */
export async function runService(name: string, compose: (environment: Environment) => Promise<RunningService>): Promise<void> {
  try {
    const tracing = startProcessTracing(`penstock-${name}`, process.env);
    const stopping = stopSignal();
    const service = await compose(process.env);
    process.stdout.write(`${JSON.stringify({ service: name, url: service.url, pid: process.pid })}\n`);
    await Promise.race([stopping, parentGone(process.env['PARENT_PID'])]);
    await service.close();
    await tracing.stop();
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${name} cannot run: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}
