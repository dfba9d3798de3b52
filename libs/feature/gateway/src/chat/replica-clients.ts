import { Pool } from 'undici';
import { addressOf, EngineConnection, type EngineAddress } from './engine-connection.js';

/** Idle connections that are kept for one replica; admission keeps requests within its slots, which are fewer. */
const IDLE_MAX = 1_024;
/** Replicas whose connections are kept; the one unused longest goes first. */
const REPLICAS_MAX = 1_024;

/** Connections to one engine. Each carries one request at a time. */
export interface Connections {
  /** Path before the engine's own routes; empty when there is none. */
  readonly pathPrefix: string;
  take(): EngineConnection;
  /** The request is over; the connection may serve the next one. */
  give(connection: EngineConnection): void;
}

/** The connections of one replica as a stack: the one used last is used next, so those beyond need fall idle and close. */
class ReplicaConnections implements Connections {
  private readonly idle: EngineConnection[] = [];
  private readonly busy = new Set<EngineConnection>();
  private isClosed = false;

  constructor(private readonly address: EngineAddress, readonly pathPrefix: string) {}

  take(): EngineConnection {
    const nowMs = performance.now();
    let connection = this.idle.pop();
    while (connection !== undefined && !connection.canServe(nowMs)) {
      connection.destroy();
      connection = this.idle.pop();
    }
    connection ??= new EngineConnection(this.address);
    this.busy.add(connection);
    return connection;
  }

  give(connection: EngineConnection): void {
    if (!this.busy.delete(connection)) return;
    if (!this.isClosed && this.idle.length < IDLE_MAX && connection.canServe(performance.now())) this.idle.push(connection);
    else connection.destroy();
  }

  /** Ends idle connections now and the others when their requests are over. */
  close(): void {
    this.isClosed = true;
    for (const connection of this.idle.splice(0)) connection.destroy();
  }

  destroy(): void {
    this.close();
    for (const connection of this.busy) connection.destroy();
    this.busy.clear();
  }
}

/** Connections of one pool: it looks through all of them at each request. */
const POOL_CONNECTIONS_MAX = 128;
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
// Time limits of answers are the caller's: an engine may work for minutes before its first byte.
const poolSettings = { connections: POOL_CONNECTIONS_MAX, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0, pipelining: 1, connect: { timeout: CONNECT_TIMEOUT_MS } } as const;

/** Kept-alive connections to the engines, by their URL. */
export class ReplicaClients {
  private readonly replicas = new Map<string, ReplicaConnections>();
  private readonly pools = new Map<string, Pool>();

  get(url: string): Connections {
    const known = this.replicas.get(url);
    if (known !== undefined) {
      // The order matters only where some have to go.
      if (this.replicas.size >= REPLICAS_MAX) this.touch(url, known);
      return known;
    }
    const parsed = new URL(url);
    const connections = new ReplicaConnections(addressOf(parsed), prefixOf(parsed));
    this.touch(url, connections);
    const [oldest] = this.replicas.keys();
    if (this.replicas.size > REPLICAS_MAX && oldest !== undefined) {
      this.replicas.get(oldest)?.close();
      this.replicas.delete(oldest);
    }
    return connections;
  }

  /** A client of all of HTTP, for engines of tensors: any method, binary bodies, headers of the answer. */
  pool(url: string): Pool {
    const { origin } = new URL(url);
    const pool = this.pools.get(origin) ?? new Pool(origin, poolSettings);
    this.pools.delete(origin);
    this.pools.set(origin, pool);
    const [oldest] = this.pools.keys();
    if (this.pools.size > REPLICAS_MAX && oldest !== undefined) {
      void this.pools.get(oldest)?.close();
      this.pools.delete(oldest);
    }
    return pool;
  }

  /** One connection that was never used, for a request that met a connection the engine had just closed. */
  fresh(url: string): Connections {
    const parsed = new URL(url);
    return { pathPrefix: prefixOf(parsed), take: () => new EngineConnection(addressOf(parsed)), give: (connection) => connection.destroy() };
  }

  async close(): Promise<void> {
    for (const replica of this.replicas.values()) replica.destroy();
    this.replicas.clear();
    await Promise.all([...this.pools.values()].map((pool) => pool.destroy()));
    this.pools.clear();
  }

  private touch(url: string, connections: ReplicaConnections): void {
    this.replicas.delete(url);
    this.replicas.set(url, connections);
  }
}

function prefixOf(url: URL): string {
  return url.pathname.replace(/\/$/, '');
}
