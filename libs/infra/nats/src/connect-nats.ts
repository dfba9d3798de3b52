import { readFileSync } from 'node:fs';
import type { Logger } from '@penstock/kernel';
import { connect, type ConnectionOptions, type NatsConnection } from '@nats-io/transport-node';
import { atMost } from './broker-api.js';
import { rememberInboxPrefix } from './inbox.js';
import { inboxPrefixOf } from './service-permissions.js';

export interface NatsOptions {
  /** `nats://user:password@host:4222`, `nats://token@host`, `tls://…`; several servers separated by commas. */
  readonly url: string;
  /** Shown in the server's list of connections, as in `penstock/registry`. */
  readonly name: string;
  /** PEM of the authority that signed the server's certificate, or the path of such a file. */
  readonly ca?: string | undefined;
  readonly logger?: Logger | undefined;
}

export type LinkState = 'connected' | 'disconnected' | 'closed';

/** One shared connection to NATS, with what the adapters need to know about it. */
export interface NatsLink {
  readonly connection: NatsConnection;
  readonly options: NatsOptions;
  state(): LinkState;
  /** Called after each reconnect. Returns how to stop listening. */
  onReconnect(listener: () => void): () => void;
  /** Called each time the connection is lost. Returns how to stop listening. */
  onDisconnect(listener: () => void): () => void;
  /** Sends what is buffered, at most for {@link CLOSE_TIMEOUT_MS}, then closes. Safe to call twice. */
  close(): Promise<void>;
}

/** The event log needs atomic batches whose commit is checked, fixed in 2.14. */
export const NATS_VERSION_MIN = { major: 2, minor: 14 } as const;

const CONNECT_TIMEOUT_MS = 5_000;
const CLOSE_TIMEOUT_MS = 5_000;
const RECONNECT_WAIT_MS = 250;
const RECONNECT_JITTER_MS = 250;
const PING_INTERVAL_MS = 10_000;
const PINGS_UNANSWERED_MAX = 2;

/** The server cannot carry the event log. */
export class NatsServerUnsuitableError extends Error {
  override readonly name = 'NatsServerUnsuitableError';
}

/** Nobody answered, or the server refused the credentials. */
export class NatsConnectError extends Error {
  override readonly name = 'NatsConnectError';
}

/**
 * Connects, and refuses a server that is older than 2.14 or runs without JetStream ({@link NatsServerUnsuitableError}).
 * Throws {@link NatsConnectError} when the first attempt fails; later it reconnects for ever.
 */
export async function connectNats(options: NatsOptions): Promise<NatsLink> {
  const connection = await connect(connectionOptions(options)).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new NatsConnectError(`Cannot connect to NATS at ${withoutCredentials(options.url)}: ${reason}. Check that the server runs and that NATS_URL has the right credentials.`, { cause: error });
  });
  rememberInboxPrefix(connection, connectionOptions(options).inboxPrefix ?? '');
  const problem = unsuitable(connection);
  if (problem !== undefined) {
    await connection.close();
    throw new NatsServerUnsuitableError(problem);
  }
  return new ConnectedLink(connection, options);
}

/** Options of the client library, also for Nest's own transporter. */
export function connectionOptions(options: NatsOptions): ConnectionOptions {
  const urls = options.url.split(',').map((text) => new URL(text.includes('://') ? text.trim() : `nats://${text.trim()}`));
  const first = urls[0];
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  const credentials = user === '' ? {} : pass === '' ? { token: user } : { user, pass };
  const encrypted = options.ca !== undefined || urls.some((url) => url.protocol === 'tls:');
  return {
    servers: urls.map((url) => `${url.hostname}:${url.port || '4222'}`),
    ...credentials,
    ...(encrypted ? { tls: options.ca === undefined ? {} : { ca: pem(options.ca) } } : {}),
    name: options.name,
    // A user listens for answers below its own name, so that no other user can.
    inboxPrefix: inboxPrefixOf(pass === '' ? '' : user),
    timeout: CONNECT_TIMEOUT_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    reconnectJitter: RECONNECT_JITTER_MS,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: PINGS_UNANSWERED_MAX,
    // A server that starts may refuse for a moment; giving up for good would need a restart of every service.
    ignoreAuthErrorAbort: true,
    // Stack traces of every request cost more than the requests.
    noAsyncTraces: true,
  };
}

function pem(ca: string): string {
  return ca.includes('-----BEGIN') ? ca : readFileSync(ca, 'utf8');
}

function withoutCredentials(url: string): string {
  return url.replaceAll(/\/\/[^/@,]*@/g, '//');
}

function unsuitable(connection: NatsConnection): string | undefined {
  const version = connection.info?.version ?? 'unknown';
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  const { major: majorMin, minor: minorMin } = NATS_VERSION_MIN;
  if (!(major > majorMin || (major === majorMin && minor >= minorMin))) {
    return `The NATS server at ${connection.getServer()} is version ${version}; Penstock needs ${majorMin}.${minorMin} or newer. Upgrade it, or point NATS_URL to a newer one.`;
  }
  if (connection.info?.jetstream !== true) {
    return `The NATS server at ${connection.getServer()} runs without JetStream. Start it with JetStream and a storage folder (\`nats-server -js -sd DIR\`).`;
  }
  return undefined;
}

class ConnectedLink implements NatsLink {
  private current: LinkState = 'connected';
  private readonly listeners = new Set<() => void>();
  private readonly lossListeners = new Set<() => void>();
  private closing: Promise<void> | undefined;

  constructor(readonly connection: NatsConnection, readonly options: NatsOptions) {
    void this.watch();
  }

  state(): LinkState {
    return this.connection.isClosed() ? 'closed' : this.current;
  }

  onReconnect(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onDisconnect(listener: () => void): () => void {
    this.lossListeners.add(listener);
    return () => this.lossListeners.delete(listener);
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private async watch(): Promise<void> {
    const { logger } = this.options;
    for await (const status of this.connection.status()) {
      if (status.type === 'disconnect') {
        this.current = 'disconnected';
        for (const listener of this.lossListeners) listener();
        logger?.warn({ server: status.server }, 'lost the connection to NATS; reconnecting');
      } else if (status.type === 'reconnect') {
        this.current = 'connected';
        logger?.info({ server: status.server }, 'connected to NATS again');
        for (const listener of this.listeners) listener();
      } else if (status.type === 'error') {
        logger?.warn({ err: status.error }, 'NATS reported an error');
      }
    }
    this.current = 'closed';
  }

  private async shutDown(): Promise<void> {
    // Without a server nothing can be sent any more, and waiting for it would hang.
    if (this.state() === 'connected') await atMost(CLOSE_TIMEOUT_MS, this.connection.drain());
    await this.connection.close().catch(() => undefined);
  }
}
