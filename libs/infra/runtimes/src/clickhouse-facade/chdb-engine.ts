import { createRequire } from 'node:module';
import { ClickhouseError } from './clickhouse-error.js';

/** Queries that wait for their turn; more are refused. */
const QUERIES_WAITING_MAX = 256;
/** Results are held in memory as a whole; a longer one is refused by the engine with `TOO_MANY_ROWS_OR_BYTES`. */
const RESULT_BYTES_MAX = 256 * 1_048_576;

interface ChdbResult {
  readonly rowsRead: number;
  readonly bytesRead: number;
  bytes(): Uint8Array;
}

interface ChdbSession {
  queryAsync(sql: string, options: { readonly format: string }): Promise<ChdbResult>;
  queryBindAsync(sql: string, parameters: Readonly<Record<string, string | null>>, options: { readonly format: string }): Promise<ChdbResult>;
  close(): void;
}

interface ChdbModule {
  readonly Session: new (path: string) => ChdbSession;
  drainPending(): Promise<void>;
}

export interface EngineQuery {
  readonly sql: string;
  readonly format: string;
  readonly database: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Values in text form; null is SQL's NULL. */
  readonly parameters: Readonly<Record<string, string | null>>;
}

export interface EngineResult {
  readonly bytes: Uint8Array;
  readonly rowsRead: number;
  readonly bytesRead: number;
}

/**
 * ClickHouse inside this process. The library has one session with one set of settings, so queries run one after the
 * other: a query's settings are set before it and taken back after it, and never seen by another.
 */
export class ChdbEngine {
  private readonly module: ChdbModule;
  private readonly session: ChdbSession;
  private tail: Promise<unknown> = Promise.resolve();
  private waiting = 0;
  private currentDatabase = 'default';

  constructor(modulePath: string, dataDir: string) {
    this.module = createRequire(modulePath)(modulePath) as ChdbModule;
    this.session = new this.module.Session(dataDir);
  }

  /** Sets the limits and makes the database. */
  async prepare(database: string): Promise<void> {
    await this.plain(`SET max_result_bytes = ${RESULT_BYTES_MAX}, result_overflow_mode = 'throw', implicit_select = 0`);
    await this.plain(`CREATE DATABASE IF NOT EXISTS ${quoteName(database)}`);
  }

  /** Runs one query when its turn comes. Throws {@link ClickhouseError}. */
  run(query: EngineQuery): Promise<EngineResult> {
    if (this.waiting >= QUERIES_WAITING_MAX) {
      return Promise.reject(ClickhouseError.of(202, 'TOO_MANY_SIMULTANEOUS_QUERIES', `${QUERIES_WAITING_MAX} queries wait already; send fewer at once`));
    }
    this.waiting += 1;
    const result = this.tail.then(() => this.runNow(query)).finally(() => {
      this.waiting -= 1;
    });
    this.tail = result.catch(() => undefined);
    return result;
  }

  /** Waits for the queries under way and closes the data folder. */
  async close(): Promise<void> {
    await this.tail;
    this.session.close();
    await this.module.drainPending();
  }

  private async runNow(query: EngineQuery): Promise<EngineResult> {
    const names = Object.keys(query.settings);
    try {
      await this.useDatabase(query.database);
      if (names.length > 0) await this.plain(`SET ${names.map((name) => `${name} = ${quoteText(query.settings[name] ?? '')}`).join(', ')}`);
      const options = { format: query.format };
      const hasParameters = Object.keys(query.parameters).length > 0;
      const result = hasParameters ? await this.session.queryBindAsync(query.sql, query.parameters, options) : await this.session.queryAsync(query.sql, options);
      return { bytes: result.bytes(), rowsRead: result.rowsRead, bytesRead: result.bytesRead };
    } catch (error) {
      throw ClickhouseError.from(error);
    } finally {
      // One by one, so that an unknown setting among them does not keep the others from being taken back.
      for (const name of names) await this.plain(`SET ${name} = ${this.defaultOf(name)}`).catch(() => undefined);
    }
  }

  private defaultOf(name: string): string {
    if (name === 'max_result_bytes') return String(RESULT_BYTES_MAX);
    if (name === 'result_overflow_mode') return "'throw'";
    return name === 'implicit_select' ? '0' : 'DEFAULT';
  }

  private async useDatabase(database: string): Promise<void> {
    if (database === this.currentDatabase) return;
    await this.plain(`USE ${quoteName(database)}`);
    this.currentDatabase = database;
  }

  private async plain(sql: string): Promise<void> {
    await this.session.queryAsync(sql, { format: 'Null' });
  }
}

function quoteName(name: string): string {
  return `\`${name.replaceAll('\\', '\\\\').replaceAll('`', '\\`')}\``;
}

function quoteText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
