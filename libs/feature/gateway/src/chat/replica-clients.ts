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

/** Kept-alive connections to the engines, by their URL. */
export class ReplicaClients {
  private readonly replicas = new Map<string, ReplicaConnections>();

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

  /** One connection that was never used, for a request that met a connection the engine had just closed. */
  fresh(url: string): Connections {
    const parsed = new URL(url);
    return { pathPrefix: prefixOf(parsed), take: () => new EngineConnection(addressOf(parsed)), give: (connection) => connection.destroy() };
  }

  close(): Promise<void> {
    for (const replica of this.replicas.values()) replica.destroy();
    this.replicas.clear();
    return Promise.resolve();
  }

  private touch(url: string, connections: ReplicaConnections): void {
    this.replicas.delete(url);
    this.replicas.set(url, connections);
  }
}

function prefixOf(url: URL): string {
  return url.pathname.replace(/\/$/, '');
}
