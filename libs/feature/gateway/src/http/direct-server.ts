import type { Timers } from '@penstock/kernel';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { DirectConnection, type DirectConnectionParts } from './direct-connection.js';
import type { DirectRoutes } from './direct-routes.js';
import { HEADER_BYTES_MAX, HEADERS_TIMEOUT_MS, KEEP_ALIVE_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from './server-options.js';

/** How often connections are looked at whose time is up. */
const SWEEP_INTERVAL_MS = 5_000;

/**
 * Reads the connections of an HTTP server itself for as long as they carry nothing but plain calls of direct routes: half of what
 * such a call costs in Node's HTTP is streams and events that it has no use for. Anything else goes to Node from its first byte on.
 */
export class DirectServer {
  private readonly connections = new Set<DirectConnection>();
  private readonly stopTimer: () => void;
  private isClosing = false;

  constructor(private readonly server: Server, routes: DirectRoutes, timers: Timers) {
    const [nodeListener] = server.listeners('connection') as ((socket: Socket) => void)[];
    if (nodeListener === undefined) throw new TypeError('the server has no listener for connections to stand before');
    const parts: DirectConnectionParts = {
      routes, headBytesMax: HEADER_BYTES_MAX,
      keepAlive: `connection: keep-alive\r\nkeep-alive: timeout=${KEEP_ALIVE_TIMEOUT_MS / 1_000}\r\n`,
      isClosing: () => this.isClosing,
      onClose: (connection) => this.connections.delete(connection),
      handOver: (connection, socket, unread) => {
        this.connections.delete(connection);
        nodeListener.call(server, socket);
        socket.unshift(unread);
      },
    };
    server.off('connection', nodeListener);
    server.prependListener('connection', (socket: Socket) => this.connections.add(new DirectConnection(socket, parts, performance.now())));
    this.stopTimer = timers.every(SWEEP_INTERVAL_MS, () => this.sweep(performance.now()));
  }

  /** Closes what carries no request, and the others after theirs; the server does not count any of them as idle. */
  close(): void {
    this.isClosing = true;
    this.stopTimer();
    for (const connection of this.connections) {
      if (connection.phase !== 'unused' && connection.phase !== 'idle') continue;
      if (connection.hasUnsent) connection.endSoon();
      else connection.destroy();
    }
  }

  private sweep(nowMs: number): void {
    for (const connection of this.connections) {
      const waitedMs = nowMs - connection.sinceMs;
      // A client that is slow to read its answer is not idle.
      if (connection.phase === 'idle' && waitedMs >= (connection.hasUnsent ? REQUEST_TIMEOUT_MS : KEEP_ALIVE_TIMEOUT_MS)) connection.destroy();
      else if ((connection.phase === 'unused' && waitedMs >= HEADERS_TIMEOUT_MS) || (connection.phase === 'body' && waitedMs >= REQUEST_TIMEOUT_MS)) {
        // The same event, and so the same answer, as for a connection of Node's.
        this.server.emit('clientError', Object.assign(new Error('the request did not arrive in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), connection.socket);
      }
    }
  }
}
