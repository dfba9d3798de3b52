import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What libzmq 4.3.5 greets with: version 3.1, mechanism NULL. */
export const GREETING = Buffer.from(`ff00000000000000017f0301${'4e554c4c'.padEnd(40, '0')}${'00'.repeat(32)}`, 'hex');
/** And how its PUB socket says that it is ready. */
export const READY = Buffer.from('\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB', 'latin1');

/** A publisher as libzmq is one, byte for byte, whose frames a test writes itself. */
export class ZmtpPublisher {
  readonly sockets: Socket[] = [];
  /** All that subscribers sent, in order. */
  heard = Buffer.alloc(0);

  private constructor(private readonly server: Server, private readonly hello: Buffer) {
    server.on('connection', (socket) => {
      this.sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => (this.heard = Buffer.concat([this.heard, chunk])));
      socket.write(this.hello);
    });
  }

  /** `hello` is what it greets with. */
  static async start(hello: Buffer = Buffer.concat([GREETING, READY])): Promise<ZmtpPublisher> {
    const server = createServer();
    const publisher = new ZmtpPublisher(server, hello);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return publisher;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  write(bytes: Buffer): void {
    for (const socket of this.sockets) socket.write(bytes);
  }

  publish(...parts: readonly Buffer[]): void {
    this.write(frames(parts));
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}

/** The frames of one message: short ones up to 255 bytes, as libzmq cuts them. */
export function frames(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, index) => {
    const more = index < parts.length - 1 ? 1 : 0;
    if (part.length <= 255) return [Buffer.from([more, part.length]), part];
    const head = Buffer.alloc(9);
    head[0] = more | 2;
    head.writeBigUInt64BE(BigInt(part.length), 1);
    return [head, part];
  }));
}
