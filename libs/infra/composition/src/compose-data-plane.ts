import { USAGE_RECORDS_MAX } from '@penstock/contract-events';
import { join } from 'node:path';
import { gatewayConfig, startGateway } from '@penstock/feature-gateway';
import { meteringConfig, PENDING_RECORDS_MAX, startMetering } from '@penstock/feature-metering';
import { batchConfig, startBatch } from '@penstock/feature-batch';
import type { RunningService } from '@penstock/feature-shell';
import { ClickhouseUsageReports, ClickhouseUsageSink, connectClickhouse } from '@penstock/infra-clickhouse';
import { KvEventsByEngine } from '@penstock/infra-engines';
import { batchTableProjection, meteringTableProjection, PostgresBatchQueries } from '@penstock/infra-postgres';
import { ANSWERS_BUCKET, NatsSharedRecords } from '@penstock/infra-nats';
import { FileUsageSpool, HmacKeyMinter } from '@penstock/infra-spool';
import { z } from 'zod';
import { withDatabase } from './compose-control-plane.js';
import { openObjects } from './objects.js';
import { openPlatform } from './platform.js';
import { createServiceLogger } from './service-logger.js';
import { readSettings, type Environment } from './settings.js';
import { closingOnFailure, withClosers } from './with-closers.js';

const gatewayAdapterConfig = z.object({
  /** Folder of this gateway alone; its usage spool lies in it and must outlive the process. */
  DATA_DIR: z.string().min(1),
  /** Key of the HMAC under which API keys are stored; the same for every gateway of an installation. */
  KEY_PEPPER: z.string().min(16),
  /** What the cache salts of tenants are derived from; the same for every gateway. The pepper when left out. */
  CACHE_SALT_KEY: z.string().min(16).optional(),
});

const meteringAdapterConfig = z.object({
  /** `http://user:password@host:port/database`. */
  CLICKHOUSE_URL: z.string().min(1),
});

/** Events that may wait for ClickHouse at once: all their records find room. */
const USAGE_IN_FLIGHT_MAX = Math.floor(PENDING_RECORDS_MAX / USAGE_RECORDS_MAX);

export async function composeGateway(environment: Environment): Promise<RunningService> {
  const adapters = readSettings(gatewayAdapterConfig, environment);
  const config = readSettings(gatewayConfig, environment);
  const platform = await openPlatform('gateway', environment, { servesCommands: false, worksWithoutBroker: true });
  const closers: (() => Promise<void>)[] = [];
  return closingOnFailure([...closers, () => platform.close()], async () => {
    const objects = await openObjects(environment);
    closers.push(() => Promise.resolve(objects.close()));
    const usage = await FileUsageSpool.open({ folder: join(adapters.DATA_DIR, 'spool'), log: platform.ports.log, logger: platform.logger });
    closers.push(() => usage.close());
    closers.push(() => platform.close());
    const answers = new NatsSharedRecords(platform.link, ANSWERS_BUCKET);
    const service = await startGateway(config, { ...platform.ports, keys: new HmacKeyMinter(adapters.KEY_PEPPER, adapters.CACHE_SALT_KEY), usage, objects: objects.store, deadLetters: platform.deadLetters, answers, kvEvents: new KvEventsByEngine() });
    return withClosers(service, closers);
  });
}

export function composeMetering(environment: Environment): Promise<RunningService> {
  const { CLICKHOUSE_URL } = readSettings(meteringAdapterConfig, environment);
  const clickhouse = connectClickhouse(CLICKHOUSE_URL, { logger: createServiceLogger('metering', environment) });
  const closers = [() => clickhouse.close()];
  return closingOnFailure(closers, async () => {
    const service = await withDatabase('metering', environment, (platform, database) =>
      startMetering(readSettings(meteringConfig, environment), {
        ...platform.ports,
        probes: [...(platform.ports.probes ?? []), { name: 'clickhouse', check: () => clickhouse.check() }],
        sink: new ClickhouseUsageSink(clickhouse),
        reports: new ClickhouseUsageReports(clickhouse),
        projections: [database.project(platform, meteringTableProjection)],
        eventTransports: [platform.consumer({ stream: 'EV_USAGE', durable: 'metering-usage', maxInFlight: USAGE_IN_FLIGHT_MAX })],
      }),
    );
    return withClosers(service, closers);
  });
}

export async function composeBatch(environment: Environment): Promise<RunningService> {
  const config = readSettings(batchConfig, environment);
  const objects = await openObjects(environment);
  const closers = [() => Promise.resolve(objects.close())];
  return closingOnFailure(closers, async () => {
    const service = await withDatabase('batch', environment, (platform, database) =>
      startBatch(config, {
        ...platform.ports,
        objects: objects.store,
        queries: new PostgresBatchQueries(database.connection),
        projections: [database.project(platform, batchTableProjection)],
      }),
    );
    return withClosers(service, closers);
  });
}
