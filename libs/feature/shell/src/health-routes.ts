import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import type { HealthProbe } from './ports.js';

export interface HealthSource {
  readonly name: string;
  readonly metrics: Registry;
  readonly probes: readonly HealthProbe[];
  readonly isDraining: () => boolean;
}

/** A probe that hangs counts as failed after this long. */
const PROBE_TIMEOUT_MS = 1_000;

/** `/livez` says that the process runs, `/readyz` that it can work, with what is missing: `degraded` where it works without that. `/metrics` is Prometheus text. */
export function registerHealthRoutes(instance: FastifyInstance, source: HealthSource): void {
  instance.get('/livez', (_request, reply) => reply.send({ status: 'ok', service: source.name }));
  const readiness = async (): Promise<{ ready: boolean; checks: Record<string, string> }> => {
    const checks: Record<string, string> = {};
    let ready = true;
    await Promise.all(source.probes.map(async (probe) => {
      const problem = await bounded(probe);
      checks[probe.name] = problem ?? 'ok';
      if (problem !== undefined && probe.isVital !== false) ready = false;
    }));
    if (source.isDraining()) checks['drain'] = 'the service is stopping';
    return { ready: ready && !source.isDraining(), checks };
  };
  const answer = async () => {
    const { ready, checks } = await readiness();
    const isWhole = Object.values(checks).every((result) => result === 'ok');
    return { code: ready ? 200 : 503, body: { status: !ready ? 'unavailable' : isWhole ? 'ok' : 'degraded', service: source.name, checks } };
  };
  instance.get('/readyz', async (_request, reply) => {
    const { code, body } = await answer();
    return reply.code(code).send(body);
  });
  instance.get('/health', async (_request, reply) => {
    const { code, body } = await answer();
    return reply.code(code).send(body);
  });
  instance.get('/metrics', async (_request, reply) => reply.type(source.metrics.contentType).send(await source.metrics.metrics()));
}

async function bounded(probe: HealthProbe): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('no answer within a second'), PROBE_TIMEOUT_MS);
  });
  try {
    return await Promise.race([probe.check(), limit]);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}
