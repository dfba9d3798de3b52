import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';

export interface ListenAddress {
  readonly port: number;
  readonly host: string;
  readonly backlog: number;
}

/** Where several sockets of one process may listen on one port, each with a queue of its own. */
export const hasAcceptQueues = process.platform === 'linux';

/**
 * Throws what listening would throw when somebody else has the port. Sockets that share a port do not find out by themselves
 * that another process of the same user shares it, too.
 */
export async function assertPortIsFree({ port, host }: Pick<ListenAddress, 'port' | 'host'>): Promise<void> {
  if (port === 0) return;
  const probe = createServer();
  probe.listen({ port, host });
  await once(probe, 'listening');
  probe.close();
  await once(probe, 'close');
}

/**
 * More sockets on the address of `server`, whose connections become its own. The event loop takes one new connection from each
 * listening socket in a turn (libuv since 1.45); a busy loop has long turns, so that a burst of connections would wait for
 * seconds behind requests that came later on open ones. Returns how to close them, which waits for their connections.
 */
export async function openAcceptQueues(server: Server, { host, backlog }: Omit<ListenAddress, 'port'>, count: number): Promise<() => Promise<void>> {
  const { port } = server.address() as AddressInfo;
  const queues = Array.from({ length: count }, () => createServer({ allowHalfOpen: true, noDelay: true }, (socket) => void server.emit('connection', socket)));
  const close = async (): Promise<void> => {
    await Promise.all(queues.filter((queue) => queue.listening).map((queue) => new Promise<void>((resolve) => {
      queue.close(() => resolve());
    })));
  };
  try {
    await Promise.all(queues.map((queue) => once(queue.listen({ port, host, backlog, reusePort: true }), 'listening')));
  } catch (error) {
    await close();
    throw error;
  }
  return close;
}
