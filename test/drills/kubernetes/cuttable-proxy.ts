import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { findFreePort } from '@penstock/infra-runtimes';

/** A TCP connection that can be cut and mended, as a network between two machines. */
export class CuttableProxy {
  private readonly sockets = new Set<Socket>();
  private isCut = false;

  private constructor(private readonly server: Server, readonly port: number) {}

  static async start(targetPort: number): Promise<CuttableProxy> {
    const port = await findFreePort();
    const server = createServer();
    const proxy = new CuttableProxy(server, port);
    server.on('connection', (incoming) => proxy.accept(incoming, targetPort));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  cut(): void {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.isCut = false;
  }

  async close(): Promise<void> {
    this.cut();
    this.server.close();
    await once(this.server, 'close');
  }

  private accept(incoming: Socket, targetPort: number): void {
    if (this.isCut) {
      incoming.destroy();
      return;
    }
    const outgoing = connect(targetPort, '127.0.0.1');
    for (const [socket, other] of [[incoming, outgoing], [outgoing, incoming]] as const) {
      this.sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
