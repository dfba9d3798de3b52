import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Connections that never carried a request, as clients open them ahead of need. The server does not count them as idle, so
 * one of them would keep it from closing. Returns how to close them all.
 */
export function trackUnusedSockets(server: Server): () => void {
  const unused = new Set<Socket>();
  server.on('connection', (socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.on('request', (request: IncomingMessage) => unused.delete(request.socket));
  return () => {
    for (const socket of unused) socket.destroy();
  };
}
