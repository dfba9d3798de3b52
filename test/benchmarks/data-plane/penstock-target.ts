import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { endpointDeployedV1, replicaPlacedV2, type CatalogueEvent } from '@penstock/contract-events';
import { connectNats, ensureStreams, NatsEventLog } from '@penstock/infra-nats';
import { findFreePort, startTestServers } from '@penstock/infra-runtimes';
import type { AggregateRef } from '@penstock/kernel';
import { repositoryRoot } from '../../contracts/files.js';
import type { RunningTarget } from './peers.js';
import { MeasuredProcess, untilListening } from './processes.js';

const MODEL = 'bench-model';
const SERVED_MODEL = 'inner-model';
/** More than any load of these benches has at once, so that what is measured is the path and not the queue. */
const SLOTS = 4_096;
const ADMIN_KEY = 'admin-key-of-the-benchmark';

export interface PenstockTarget extends RunningTarget {
  close(): Promise<void>;
}

/**
 * A router and one gateway as processes of their own on a real NATS server: keys, admission, metering to JetStream, logs and traces at
 * one per cent. The replicas are events of the log that name the engines of the benchmark.
 */
export async function startPenstock(options: { readonly folder: string; readonly enginePorts: readonly number[] }): Promise<PenstockTarget> {
  const root = repositoryRoot(import.meta.dirname);
  const servers = await startTestServers(['nats']);
  const collector = await startCollector();
  const started: MeasuredProcess[] = [];
  const close = async (): Promise<void> => {
    for (const one of started.reverse()) await one.stop();
    collector.close();
    await servers.close();
  };
  try {
    await appendEvents(servers.natsUrl, options.enginePorts);
    const start = async (name: 'gateway' | 'router', settings: Readonly<Record<string, string>>): Promise<{ process: MeasuredProcess; port: number }> => {
      const port = await findFreePort();
      const logFile = join(options.folder, `${name}.out`);
      const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], NODE_OPTIONS: name === 'gateway' ? process.env['GATEWAY_NODE_OPTIONS'] : undefined, NATS_URL: servers.natsUrl, HTTP_PORT: String(port), LOG_FILE: join(options.folder, `${name}.log`), OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0.01', ...settings };
      const service = MeasuredProcess.start(process.execPath, [join(root, `apps/${name}/dist/main.js`)], { logFile, env, measured: name === 'gateway' });
      started.push(service);
      await untilListening(port, service, name, logFile);
      return { process: service, port };
    };
    await start('router', {});
    for (const folder of ['gateway', 'objects']) mkdirSync(join(options.folder, folder), { recursive: true });
    const gateway = await start('gateway', { DATA_DIR: join(options.folder, 'gateway'), OBJECTS_DIR: join(options.folder, 'objects'), ADMIN_KEY, KEY_PEPPER: 'pepper-of-the-benchmark', REQUESTS_IN_FLIGHT_MAX: '8000' });
    const key = await createKey(gateway.port);
    return { name: 'penstock', port: gateway.port, headers: { authorization: `Bearer ${key}` }, model: MODEL, process: gateway.process, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function appendEvents(natsUrl: string, enginePorts: readonly number[]): Promise<void> {
  const link = await connectNats({ url: natsUrl, name: 'benchmark' });
  try {
    await ensureStreams(link, { replicas: 1 });
    const log = new NatsEventLog(link, { consumerName: 'benchmark' });
    let commands = 0;
    const append = async (ref: AggregateRef, event: CatalogueEvent): Promise<void> => {
      const commandId = `cmd_benchmark_${(commands += 1)}`;
      await log.append({ ref, events: [event], expected: 'any', commandId, correlationId: commandId, causationId: commandId, source: 'penstock/benchmark', nowMs: Date.now() });
    };
    const serving = { slotsPerReplica: 1_024, contextTokens: 131_072, queueMax: 10_000, queueWaitMsMax: 30_000 };
    await append({ context: 'registry', aggregate: 'endpoint', id: 'ep_bench' }, { type: 'endpoint.deployed.v1', data: { ...endpointDeployedV1.example, endpointId: 'ep_bench', name: MODEL, engine: 'vllm', serving } });
    for (const [index, port] of enginePorts.entries()) {
      const replicaId = `rep_${index}`;
      const ref = { context: 'fleet', aggregate: 'replica', id: replicaId } as const;
      await append(ref, { type: 'replica.placed.v2', data: { ...replicaPlacedV2.example, replicaId, endpointId: 'ep_bench' } });
      await append(ref, { type: 'replica.ready.v1', data: { replicaId, url: `http://127.0.0.1:${port}`, engine: 'vllm', servedModel: SERVED_MODEL, slots: SLOTS, contextTokens: 131_072, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } } });
    }
  } finally {
    await link.close();
  }
}

async function createKey(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/admin/v1/keys`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }, body: JSON.stringify({ name: 'benchmark' }) });
  if (!answer.ok) throw new Error(`the gateway made no key: HTTP ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { key: string }).key;
}

/** Takes the traces and forgets them. */
async function startCollector(): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
