import { Client, Pool, type Dispatcher } from 'undici';

/** Shorter than the five seconds after which engines close an idle connection, so that we are never the one surprised. */
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
/** Connections to one replica; admission keeps requests within its slots, which are fewer. */
const CONNECTIONS_MAX = 1_024;
/** Replicas whose connections are kept; the one unused longest goes first. */
const REPLICAS_MAX = 1_024;

// Time limits of answers are our own: an engine may work for minutes before its first byte.
const settings = { keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0, pipelining: 1, connect: { timeout: CONNECT_TIMEOUT_MS } } as const;

/** Kept-alive connections to the engines, by their URL. */
export class ReplicaClients {
  private readonly pools = new Map<string, Pool>();

  get(url: string): Dispatcher {
    const { origin } = new URL(url);
    const known = this.pools.get(origin);
    if (known !== undefined) {
      this.pools.delete(origin);
      this.pools.set(origin, known);
      return known;
    }
    const pool = new Pool(origin, { ...settings, connections: CONNECTIONS_MAX });
    this.pools.set(origin, pool);
    const [oldest] = this.pools.keys();
    if (this.pools.size > REPLICAS_MAX && oldest !== undefined) {
      void this.pools.get(oldest)?.close();
      this.pools.delete(oldest);
    }
    return pool;
  }

  /** One connection that was never used, for a request that met a connection the engine had just closed. */
  fresh(url: string): Client {
    return new Client(new URL(url).origin, settings);
  }

  async close(): Promise<void> {
    await Promise.all([...this.pools.values()].map((pool) => pool.destroy()));
    this.pools.clear();
  }
}
