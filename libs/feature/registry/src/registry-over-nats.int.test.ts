import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { deployEndpoint, listEndpoints, listModelVersions, registerModelVersion, retireEndpoint, verifyProjections, type CommandContract } from '@penstock/contract-commands';
import type { ArtifactInspector } from '@penstock/domain-catalog';
import type { RunningService } from '@penstock/feature-shell';
import { connectNats, ensureStreams, NatsCommandClient, natsCommandTransport, NatsEventLog, NatsSignals, type NatsLink } from '@penstock/infra-nats';
import { connectPostgres, PostgresCatalogQueries, PostgresProjector, registryTableProjection, type PostgresConnection } from '@penstock/infra-postgres';
import { startTestServers } from '@penstock/infra-runtimes';
import { createSystemTimers, randomIds, systemClock } from '@penstock/infra-telemetry';
import { followProjection, silentLogger } from '@penstock/kernel';
import { eventually } from '@penstock/testing-kit';
import type { z } from 'zod';
import { registryConfig } from './registry-config.js';
import { startRegistry } from './start-registry.js';

const inspector: ArtifactInspector = {
  inspect: (source) => Promise.resolve({
    source,
    artifacts: [{ path: 'a.gguf', bytes: 1_000, digest: `sha256:${'a'.repeat(64)}` }],
    header: { format: 'gguf', architecture: 'llama', parameters: 10, precision: 'Q4_1', layers: 2, contextTokensMax: 2_048, kvBytesPerToken: 64, weightBytes: 900, license: null, randomWeights: false },
  }),
};

let servers: Awaited<ReturnType<typeof startTestServers<'nats' | 'postgres'>>>;
let link: NatsLink;
let connection: PostgresConnection;
let projector: PostgresProjector;
let registry: RunningService;
let client: NatsCommandClient;

async function start(): Promise<void> {
  const log = new NatsEventLog(link, { consumerName: 'registry', logger: silentLogger });
  projector = PostgresProjector.start({ connection, log, projection: registryTableProjection, logger: silentLogger });
  registry = await startRegistry(registryConfig.parse({}), {
    clock: systemClock, ids: randomIds, timers: createSystemTimers(silentLogger), logger: silentLogger, log, inspector,
    commands: client, signals: new NatsSignals(link),
    queries: new PostgresCatalogQueries(connection), projections: [projector],
    follow: (projection) => followProjection(log, projection),
    commandTransport: natsCommandTransport({ url: servers.natsUrl, name: 'registry', queue: 'registry' }),
  });
}

beforeAll(async () => {
  servers = await startTestServers(['nats', 'postgres']);
  link = await connectNats({ url: servers.natsUrl, name: 'test' });
  await ensureStreams(link);
  client = new NatsCommandClient(link);
  connection = await connectPostgres(servers.databaseUrl, { logger: silentLogger });
  await start();
}, 300_000);

afterAll(async () => {
  await registry?.close();
  await projector?.close();
  await connection?.close();
  await link?.close();
  await servers?.close();
});

async function ask<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, request: z.input<Request>): Promise<z.output<Reply>> {
  const reply = await client.send(contract, request, { timeoutMs: 20_000 });
  if (reply.kind === 'refused') throw new Error(`${reply.refusal.code}: ${reply.refusal.message}`);
  return reply.value;
}

const settings = {
  organisationId: null, hardware: { acceleratorType: null, acceleratorCount: 1 }, scaling: { minReplicas: 0, maxReplicas: 1, scaleToZeroAfterIdleSeconds: null },
  serving: { slotsPerReplica: 1, contextTokens: 512, queueMax: 8, queueWaitMsMax: 1_000 }, engineOptions: {},
};
const versionOf = (modelName: string) => ({ modelName, version: '1', engine: 'llama.cpp' as const, source: { kind: 'directory' as const, path: '/models/a.gguf' } });
const endpoints = async () => (await ask(listEndpoints, {})).endpoints.map((endpoint) => endpoint.name);

test('over the broker: register, deploy, list, verify, with the database down, and after a restart', async () => {
  const { modelVersionId } = await ask(registerModelVersion, versionOf('first'));
  const deployed = await ask(deployEndpoint, { ...settings, name: 'first', modelVersionId });
  expect(deployed.created).toBe(true);
  await eventually(() => ask(listModelVersions, {}), (found) => found.modelVersions[0]?.status === 'registered');
  await eventually(endpoints, (names) => names.includes('first'));
  const verified = await ask(verifyProjections('registry'), {});
  expect(verified.projections).toMatchObject([{ name: 'registry', identical: true, events: 3, rows: 2 }]);
  expect((await client.send(deployEndpoint, { ...settings, name: 'bad', modelVersionId, scaling: { minReplicas: 2, maxReplicas: 1, scaleToZeroAfterIdleSeconds: null } }))).toMatchObject({ kind: 'refused', refusal: { param: 'scaling.minReplicas' } });

  await servers.kill('postgres');
  const second = await ask(registerModelVersion, versionOf('second'));
  await ask(deployEndpoint, { ...settings, name: 'second', modelVersionId: second.modelVersionId });
  await eventually(endpoints, (names) => names.includes('second'));
  await servers.restart('postgres');

  await registry.close();
  await projector.close();
  await start();
  await ask(retireEndpoint, { endpointId: deployed.endpointId, reason: 'gone' });
  await eventually(endpoints, (names) => names.length === 1 && names[0] === 'second');
  await projector.waitFor('EV_REGISTRY', 7, 20_000);
  const rebuilt = await ask(verifyProjections('registry'), { swap: true });
  expect(rebuilt.projections).toMatchObject([{ identical: true, events: 7, rows: 4 }]);
  expect(await endpoints()).toEqual(['second']);
}, 120_000);
