import { ClickHouseLogLevel, createClient, type ClickHouseClient } from '@clickhouse/client';
import { silentLogger, type Logger } from '@penstock/kernel';
import { MIGRATIONS_TABLE, readMigrations } from './migrations.js';
import { asStoreFailure, isSchemaMissing } from './store-failure.js';

export interface ClickhouseOptions {
  readonly logger?: Logger | undefined;
  readonly requestTimeoutMs?: number | undefined;
  readonly connectionsMax?: number | undefined;
}

const REQUEST_TIMEOUT_MS = 30_000;
const CONNECTIONS_MAX = 8;
/** ClickHouse closes an idle connection after ten seconds by default; ours go before. */
const KEEP_ALIVE_MS = 2_500;
const DATABASE_PATTERN = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** A connection to ClickHouse whose schema is made when it is first used, so that a server that is down delays nothing. */
export class ClickhouseLink {
  private schema: Promise<void> | undefined;

  constructor(private readonly client: ClickHouseClient, private readonly adminClient: ClickHouseClient, private readonly database: string, private readonly logger: Logger) {}

  /** Runs `use` against a database that has the schema. Throws `UsageStoreUnavailableError` unless the fault is in the data. */
  async with<Value>(use: (client: ClickHouseClient) => Promise<Value>): Promise<Value> {
    try {
      await this.ready();
      return await use(this.client);
    } catch (error) {
      if (isSchemaMissing(error)) this.schema = undefined;
      throw asStoreFailure(error);
    }
  }

  /** Readiness: undefined when ClickHouse answers, else what is wrong. */
  async check(): Promise<string | undefined> {
    const result = await this.client.ping({ select: true }).catch((error: unknown) => ({ success: false as const, error }));
    return result.success ? undefined : asStoreFailure(result.error).message;
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.adminClient.close()]);
  }

  private ready(): Promise<void> {
    this.schema ??= this.migrate().catch((error: unknown) => {
      this.schema = undefined;
      throw error;
    });
    return this.schema;
  }

  private async migrate(): Promise<void> {
    await this.adminClient.command({ query: `CREATE DATABASE IF NOT EXISTS \`${this.database}\`` });
    await this.client.command({ query: MIGRATIONS_TABLE });
    const result = await this.client.query({ query: 'SELECT number FROM penstock_migrations_v1 FINAL', format: 'JSONEachRow' });
    const known = new Set((await result.json<{ number: number }>()).map((row) => Number(row.number)));
    for (const { number, name, statement } of readMigrations()) {
      // The statement runs even where it is recorded: it changes nothing then, and heals a table that was dropped.
      await this.client.command({ query: statement });
      if (known.has(number)) continue;
      await this.client.command({ query: 'INSERT INTO penstock_migrations_v1 (number, name) SELECT {number:UInt32}, {name:String}', query_params: { number, name } });
      this.logger.info({ migration: number, name }, 'ClickHouse schema step applied');
    }
  }
}

/**
 * Prepares a connection to `url`, such as `http://user:password@127.0.0.1:8123/penstock`; nothing is sent yet.
 * The database is created when it does not exist. Throws for an URL that cannot be right.
 */
export function connectClickhouse(url: string, options: ClickhouseOptions = {}): ClickhouseLink {
  const parsed = parseUrl(url);
  const database = decodeURIComponent(parsed.pathname.slice(1)) || 'default';
  if (!DATABASE_PATTERN.test(database)) throw new Error('CLICKHOUSE_URL: the database after the host must be letters, digits and underscores, as in http://user:password@host:8123/penstock');
  parsed.pathname = '/';
  const settings = {
    url: parsed.toString(),
    application: 'penstock',
    request_timeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    max_open_connections: options.connectionsMax ?? CONNECTIONS_MAX,
    // What fails is thrown, and told by the caller in our own log.
    log: { level: ClickHouseLogLevel.OFF },
    keep_alive: { enabled: true, idle_socket_ttl: KEEP_ALIVE_MS },
  };
  return new ClickhouseLink(createClient({ ...settings, database }), createClient({ ...settings, database: 'default' }), database, options.logger ?? silentLogger);
}

function parseUrl(url: string): URL {
  if (!URL.canParse(url)) throw new Error('CLICKHOUSE_URL is not a URL; write it as http://user:password@host:8123/penstock');
  return new URL(url);
}
