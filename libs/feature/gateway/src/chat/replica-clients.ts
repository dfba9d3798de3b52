import { Client, type Dispatcher } from 'undici';

/** Shorter than the five seconds after which engines close an idle connection, so that we are never the one surprised. */
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_000;
/** Idle connections that are kept for one replica; admission keeps requests within its slots, which are fewer. */
const IDLE_MAX = 1_024;
/** Replicas whose connections are kept; the one unused longest goes first. */
const REPLICAS_MAX = 1_024;

// Time limits of answers are our own: an engine may work for minutes before its first byte.
const settings = { keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS, headersTimeout: 0, bodyTimeout: 0, pipelining: 1, connect: { timeout: CONNECT_TIMEOUT_MS, noDelay: true } } as const;

/** Connections to one engine. Each carries one request at a time. */
export interface Connections {
  /** Path before the engine's own routes; empty when there is none. */
  readonly pathPrefix: string;
  take(): Dispatcher;
  /** The request is over; the connection may serve the next one. */
  give(connection: Dispatcher): void;
}

/**
 * The connections of one replica as a stack: the one used last is used next, so those beyond need fall idle and close.
 * A pool of undici's searches all of its connections for a free one at each request.
 */
class ReplicaConnections implements Connections {
  private readonly idle: Client[] = [];
  private readonly busy = new Set<Client>();

  constructor(private readonly origin: string, readonly pathPrefix: string) {}

  take(): Client {
    const client = this.idle.pop() ?? new Client(this.origin, settings);
    this.busy.add(client);
    return client;
  }

  give(connection: Dispatcher): void {
    const client = connection as Client;
    if (!this.busy.delete(client)) return;
    if (this.idle.length < IDLE_MAX) this.idle.push(client);
    else client.close().catch(() => undefined);
  }

  /** Ends idle connections now and the others when their requests are over. */
  async close(): Promise<void> {
    const clients = [...this.idle.splice(0), ...this.busy];
    this.busy.clear();
    await Promise.all(clients.map((client) => client.close().catch(() => undefined)));
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.idle.splice(0), ...this.busy].map((client) => client.destroy()));
    this.busy.clear();
  }
}

/** Kept-alive connections to the engines, by their URL. */
export class ReplicaClients {
  private readonly replicas = new Map<string, ReplicaConnections>();
  private newest = '';

  get(url: string): Connections {
    const known = this.replicas.get(url);
    if (known !== undefined) {
      if (this.newest !== url && this.replicas.size >= REPLICAS_MAX) this.touch(url, known);
      return known;
    }
    const { origin, pathname } = new URL(url);
    const connections = new ReplicaConnections(origin, pathname.replace(/\/$/, ''));
    this.touch(url, connections);
    const [oldest] = this.replicas.keys();
    if (this.replicas.size > REPLICAS_MAX && oldest !== undefined) {
      void this.replicas.get(oldest)?.close();
      this.replicas.delete(oldest);
    }
    return connections;
  }

  /** One connection that was never used, for a request that met a connection the engine had just closed. */
  fresh(url: string): Connections {
    const { origin, pathname } = new URL(url);
    return {
      pathPrefix: pathname.replace(/\/$/, ''),
      take: () => new Client(origin, settings),
      give: (connection) => void connection.close().catch(() => undefined),
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.replicas.values()].map((replica) => replica.destroy()));
    this.replicas.clear();
  }

  private touch(url: string, connections: ReplicaConnections): void {
    this.replicas.delete(url);
    this.replicas.set(url, connections);
    this.newest = url;
  }
}
