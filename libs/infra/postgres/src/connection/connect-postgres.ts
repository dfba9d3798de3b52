import { MikroORM, type EntityManager, type EntitySchema } from '@mikro-orm/postgresql';
import type { Logger } from '@penstock/kernel';
import { tableEntities } from '../table-entities.js';

/** Connections one process holds at most: a transaction for each stream of its projections, a rebuild, and queries beside. */
export const POOL_CONNECTIONS_MAX = 8;

/** A server that does not answer the handshake counts as down after this long. */
export const CONNECT_TIMEOUT_MS = 2_000;

/** A statement that takes longer is broken off by the server. */
export const STATEMENT_TIMEOUT_MS = 60_000;

/** A query for a caller who waits is given up after this long, so that the caller can be answered from memory. */
export const QUERY_TIMEOUT_MS = 2_000;

/** An idle connection is closed after this long. */
const IDLE_TIMEOUT_MS = 30_000;

const PROBE_TIMEOUT_MS = 900;

/** PostgreSQL's type number of `bigint`; every one of ours is a count or a stream sequence, far below 2^53. */
const BIGINT_TYPE = 20;

export interface PostgresOptions {
  readonly logger: Logger;
  readonly poolConnectionsMax?: number;
  /** Tables beside the platform's own. */
  readonly tables?: readonly EntitySchema[];
}

/** The database did not answer in time. */
export class PostgresTimeoutError extends Error {
  override readonly name = 'PostgresTimeoutError';
  constructor(readonly timeoutMs: number) {
    super(`PostgreSQL gave no answer within ${timeoutMs} ms.`);
  }
}

/** One database: a pool that opens connections when they are needed, and again after the server was away. */
export class PostgresConnection {
  constructor(private readonly orm: MikroORM) {}

  /**
   * Runs `work` in one transaction and commits; an error rolls back and is thrown on. The transaction is the query builder's
   * and not the ORM's own, which hands itself on to every transaction that `work` begins, and which never gives a pooled
   * connection back when the server dies in the middle: after a few of those the pool would be empty for good.
   */
  async transaction<Result>(work: (manager: EntityManager) => Promise<Result>, options: { readonly isSnapshot?: boolean } = {}): Promise<Result> {
    const manager = this.orm.em.fork() as EntityManager;
    const builder = manager.getConnection().getClient().transaction();
    const transaction = options.isSnapshot === true ? builder.setIsolationLevel('repeatable read').setAccessMode('read only') : builder;
    let failure: { readonly error: unknown } | undefined;
    try {
      return await transaction.execute(async (context) => {
        manager.setTransactionContext(context);
        try {
          return await work(manager);
        } catch (error) {
          failure = { error };
          throw error;
        }
      });
    } catch (error) {
      // A rollback that fails too has nothing to add: the server has rolled back when it lost the connection.
      throw failure === undefined ? error : failure.error;
    }
  }

  /** Runs a query for a caller who waits. Rejects with {@link PostgresTimeoutError} after `timeoutMs`. */
  query<Result>(work: (manager: EntityManager) => Promise<Result>, timeoutMs: number = QUERY_TIMEOUT_MS): Promise<Result> {
    return within(timeoutMs, work(this.orm.em.fork() as EntityManager));
  }

  /** Undefined when the database answers, else what is wrong; never rejects. For readiness checks. */
  async probe(): Promise<string | undefined> {
    try {
      await this.query((manager) => manager.execute('select 1'), PROBE_TIMEOUT_MS);
      return undefined;
    } catch (error) {
      return `PostgreSQL does not answer: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  close(): Promise<void> {
    return this.orm.close(true);
  }
}

/** Prepares a pool for `databaseUrl`. Connects when first used, so a database that is down is no reason not to start. */
export async function connectPostgres(databaseUrl: string, options: PostgresOptions): Promise<PostgresConnection> {
  const orm = await MikroORM.init({
    clientUrl: databaseUrl,
    entities: [...tableEntities, ...(options.tables ?? [])],
    ensureDatabase: false,
    // Statements hold figures of customers, so none are logged; what fails is told by whoever asked.
    debug: false,
    logger: (message) => options.logger.debug({ database: 'postgres' }, message),
    pool: { min: 0, max: options.poolConnectionsMax ?? POOL_CONNECTIONS_MAX, idleTimeoutMillis: IDLE_TIMEOUT_MS },
    driverOptions: {
      application_name: 'penstock',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      // A rebuilt table is compared with the live one as text, so times must be written alike whatever the server is set to.
      options: `-c timezone=UTC -c statement_timeout=${STATEMENT_TIMEOUT_MS}`,
      onPoolCreated: parseBigintsAsNumbers,
    },
  });
  return new PostgresConnection(orm as MikroORM);
}

interface PoolWithTypes {
  readonly options: { readonly types?: { setTypeParser(type: number, parse: (text: string) => unknown): void } };
}

function parseBigintsAsNumbers(pool: PoolWithTypes): void {
  pool.options.types?.setTypeParser(BIGINT_TYPE, Number);
}

async function within<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new PostgresTimeoutError(timeoutMs)), timeoutMs);
  });
  // When the limit wins, the work still ends some time; its error is nobody's any more.
  work.catch(() => undefined);
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}
