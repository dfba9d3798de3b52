import { createServer, type AddressInfo } from 'node:net';

/** A TCP port of the loopback interface that was free a moment ago. Another process may take it: callers retry. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    server.close(() => resolve(port));
  });
  return promise;
}
