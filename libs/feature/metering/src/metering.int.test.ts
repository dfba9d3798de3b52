import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { getUsageTotals, queryUsage, verifyProjections } from '@penstock/contract-commands';
import { usageRecordedV1, type UsageRecord } from '@penstock/contract-events';
import { UsageStoreUnavailableError, type UsageSink } from '@penstock/domain-usage';
import type { RunningService } from '@penstock/feature-shell';
import { ClickhouseUsageReports, ClickhouseUsageSink, connectClickhouse, type ClickhouseLink } from '@penstock/infra-clickhouse';
import { connectNats, DeadLetters, ensureStreams, JetStreamStrategy, NatsCommandClient, natsCommandTransport, NatsEventLog, type NatsLink } from '@penstock/infra-nats';
import { startTestServers, type TestServers } from '@penstock/infra-runtimes';
import { createSystemTimers, randomIds, systemClock } from '@penstock/infra-telemetry';
import { followProjection, silentLogger } from '@penstock/kernel';
import { eventually, MemorySignals } from '@penstock/testing-kit';
import { meteringConfig } from './metering-config.js';
import { startMetering } from './start-metering.js';

const example = usageRecordedV1.schema.parse(usageRecordedV1.example);
const IN_FLIGHT = 2_000;
const verification = verifyProjections('metering');

let servers: TestServers<'nats' | 'clickhouse'>;
let nats: NatsLink;
let clickhouse: ClickhouseLink;
let log: NatsEventLog;
let commands: NatsCommandClient;
let service: RunningService | undefined;

beforeAll(async () => {
  servers = await startTestServers(['nats', 'clickhouse']);
  nats = await connectNats({ url: servers.natsUrl, name: 'penstock/test' });
  await ensureStreams(nats);
  log = new NatsEventLog(nats, { consumerName: 'test' });
  commands = new NatsCommandClient(nats);
}, 180_000);

afterAll(async () => {
  await nats?.close();
  await servers?.close();
});

beforeEach(() => {
  clickhouse = connectClickhouse(servers.clickhouseUrl, { requestTimeoutMs: 3_000 });
});

afterEach(async () => {
  await service?.close();
  await clickhouse.close();
});

async function start(sink: UsageSink = new ClickhouseUsageSink(clickhouse)): Promise<void> {
  service = await startMetering(meteringConfig.parse({ USAGE_FLUSH_DELAY_MS: '20', DRAIN_TIMEOUT_MS: '5000' }), {
    clock: systemClock, ids: randomIds, timers: createSystemTimers(silentLogger), logger: silentLogger, log, commands, signals: new MemorySignals(),
    follow: (projection) => followProjection(log, projection),
    sink, reports: new ClickhouseUsageReports(clickhouse), projections: [],
    commandTransport: natsCommandTransport({ url: servers.natsUrl, name: 'penstock/metering', queue: 'metering' }),
    eventTransports: [{ strategy: new JetStreamStrategy({ link: nats, stream: 'EV_USAGE', durable: 'metering-usage', maxInFlight: IN_FLIGHT, ackWaitMs: 2_000, retryDelayMs: 20 }) }],
    probes: [{ name: 'clickhouse', check: () => clickhouse.check() }],
  });
}

let recorded = 0;

/** Records usage of `count` new requests of one organisation; with `again`, each a second time under another event id. */
async function record(organisationId: string, count: number, again = false): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    recorded += 1;
    const data: UsageRecord = { ...example, organisationId, requestId: `req_${recorded}`, promptTokens: recorded, completionTokens: 3 };
    await append(data, `cmd_${recorded}`);
    if (again) await append(data, `cmd_again_${recorded}`);
  }
}

async function append(data: UsageRecord, commandId: string): Promise<void> {
  await log.append({
    ref: { context: 'usage', aggregate: data.organisationId, id: data.endpointId }, events: [{ type: 'usage.recorded.v1', data }],
    expected: 'any', commandId, source: 'penstock/test', nowMs: Date.parse(data.startedAt), correlationId: commandId, causationId: commandId,
  });
}

async function totalsOf(organisationId: string) {
  const reply = await commands.send(getUsageTotals, { organisationId });
  return reply.kind === 'ok' ? reply.value : { requests: -1, promptTokens: 0, completionTokens: 0, rows: 0, lastSequence: 0 };
}

const countOf = (organisationId: string, requests: number) => eventually(() => totalsOf(organisationId), (totals) => totals.requests === requests);

async function verified() {
  const reply = await commands.send(verification, {}, { timeoutMs: 30_000 });
  if (reply.kind === 'refused') throw new Error(reply.refusal.message);
  return reply.value.projections[0];
}

describe('metering', () => {
  test('takes usage to ClickHouse, counts a request that was recorded twice once, and reports it', async () => {
    await start();
    await record('org_a', 40, true);
    expect(await countOf('org_a', 40)).toMatchObject({ completionTokens: 120 });
    const startTime = Math.floor(Date.parse(example.startedAt) / 1_000);
    const page = await commands.send(queryUsage, { organisationId: 'org_a', startTime, endTime: startTime + 1, limit: 1, groupBy: ['model'], requestId: 'req_7' });
    expect(page).toMatchObject({ kind: 'ok', value: { buckets: [{ results: [{ input_tokens: 7, output_tokens: 3, num_model_requests: 1, model: example.modelName }] }], nextPage: null } });
    expect(await verified()).toMatchObject({ name: 'metering.usage_clickhouse', identical: true, events: 80, rows: 40 });
  });

  test('a crash between the insert and its acknowledgement doubles nothing', async () => {
    const real = new ClickhouseUsageSink(clickhouse);
    let isFirst = true;
    await start({
      write: async (records) => {
        await real.write(records);
        if (isFirst) {
          isFirst = false;
          throw new UsageStoreUnavailableError('the answer was lost');
        }
      },
    });
    await record('org_b', 10);
    expect(await countOf('org_b', 10)).toMatchObject({ completionTokens: 30 });
    expect(isFirst).toBe(false);
    expect(await verified()).toMatchObject({ identical: true });
  });

  test('with ClickHouse killed it stays up, says so, makes no dead letter, and catches up after a restart of both', async () => {
    await start();
    await servers.kill('clickhouse');
    await record('org_c', 30);
    await eventually(async () => (await fetch(`${service?.url}/readyz`)).status, (status) => status === 503);
    expect((await fetch(`${service?.url}/livez`)).status).toBe(200);
    expect(await commands.send(getUsageTotals, {})).toMatchObject({ kind: 'refused', refusal: { code: 'service_unavailable' } });
    await service?.close();
    await start();
    await record('org_c', 30);
    await servers.restart('clickhouse');
    expect(await countOf('org_c', 60)).toMatchObject({ completionTokens: 180 });
    await eventually(async () => (await fetch(`${service?.url}/readyz`)).status, (status) => status === 200);
    expect(await verified()).toMatchObject({ identical: true });
    expect(await new DeadLetters(nats).list()).toEqual([]);
  });

  test('a store that lacks records is found out, and filled from the log', async () => {
    await start();
    await record('org_d', 5);
    await countOf('org_d', 5);
    await clickhouse.with((client) => client.command({ query: "ALTER TABLE usage_raw_v1 DELETE WHERE organisation_id = 'org_d' SETTINGS mutations_sync = 2" }));
    expect(await verified()).toMatchObject({ identical: false });
    expect(await commands.send(verification, { swap: true }, { timeoutMs: 30_000 })).toMatchObject({ value: { projections: [{ identical: true }] } });
    expect(await totalsOf('org_d')).toMatchObject({ requests: 5 });
  });

  test('refuses a question that cannot be answered, with the field', async () => {
    await start();
    expect(await commands.send(queryUsage, { organisationId: 'org_a', startTime: 5, endTime: 5, limit: 1 })).toMatchObject({ kind: 'refused', refusal: { code: 'invalid_value', param: 'end_time' } });
  });
});
