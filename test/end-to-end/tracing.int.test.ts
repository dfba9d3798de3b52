import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { startStandalone } from '@penstock/infra-composition';
import { startTracing } from '@penstock/infra-telemetry';
import { until } from '../platform/eventually.js';

const LIMIT_MS = 120_000;
const WAIT_MS = 15_000;
const WALKABLE = 0o711;

test('one trace runs from the client over HTTP and NATS to the usage in the log', async () => {
  const exporter = new InMemorySpanExporter();
  const tracing = startTracing({ serviceName: 'penstock', processors: [new SimpleSpanProcessor(exporter)] });
  const folder = await mkdtemp(join(tmpdir(), 'penstock-trace-'));
  await chmod(folder, WALKABLE);
  const platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0 });
  try {
    const headers = { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' };
    const post = async (path: string, body: unknown, more: Record<string, string> = {}): Promise<Response> => fetch(`${platform.url}${path}`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) });
    const { key } = (await (await post('/admin/v1/keys', { name: 'trace' })).json()) as { key: string };
    await post('/v1/models/deploy', { model_name: 'traced', model_artifact: 'sim://', framework: 'engine-sim', hardware: { min_replicas: 0 } });
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const ask = (): Promise<Response> => post('/v1/chat/completions', { model: 'traced', messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 3 }, { authorization: `Bearer ${key}`, traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    await until('an answer', WAIT_MS, async () => ((await ask()).ok ? true : undefined));
    const names: ReadonlySet<string> = await until('the spans of the request', WAIT_MS, async () => {
      const found = new Set(exporter.getFinishedSpans().filter((span) => span.spanContext().traceId === traceId).map((span) => span.name));
      return ['chat', 'send cmd.router.admit', 'handle cmd.router.admit', 'process usage.recorded.v2'].every((name) => found.has(name)) ? found : undefined;
    });
    // The cold start that the request caused belongs to its trace as well.
    expect(names).toContain('handle cmd.autoscaler.wake-endpoint');
  } finally {
    await platform.close();
    await tracing.stop();
    await rm(folder, { recursive: true, force: true });
  }
}, LIMIT_MS);
