import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';
const CONNECT_TIMEOUT_MS = 1_000;
/** Below the range that systems hand to outgoing connections: one of those could hold a server's port while the server restarts. */
const PORT_MIN = 20_000;
const PORT_MAX = 32_000;
const ATTEMPTS_MAX = 200;

/** A TCP port of the loopback address that is free now; somebody else may take it before it is used. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`No free port was found between ${PORT_MIN} and ${PORT_MAX}; end some programs and retry.`);
}

/** True when a server could listen on that loopback port now. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, LOOPBACK);
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}

/** Reads the first bytes that a server says after connecting, up to the first line feed; undefined when nobody listens or it stays silent. */
export async function readGreeting(port: number): Promise<string | undefined> {
  const socket = connect({ host: LOOPBACK, port, timeout: CONNECT_TIMEOUT_MS });
  try {
    const chunks: Buffer[] = [];
    socket.once('timeout', () => socket.destroy());
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      if (chunk.includes(10)) break;
    }
    return Buffer.concat(chunks).toString('utf8').split('\n')[0];
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
}
