import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import type { DirectExchange, DirectRoutes, OpenRoute } from './direct-routes.js';
import { DirectServer } from './direct-server.js';
import type { RawAnswer } from './raw-answer.js';

/** Answers with what came, when it is told to. */
class Echo {
  private body = '';
  isAbandoned = false;

  constructor(private readonly answer: RawAnswer, private readonly waiting: (() => void)[]) {
    answer.once('close', () => waiting.push(() => undefined));
  }

  begin(length: number): void {
    if (length <= 1_000) return;
    this.answer.writeHead(413, { 'content-length': '0', connection: 'close' });
    this.answer.end('', 'latin1');
  }

  collect(chunk: Buffer): void {
    this.body += chunk.toString();
  }

  complete(): void {
    const send = (): void => {
      this.answer.writeHead(200, { 'content-length': String(Buffer.byteLength(this.body)) });
      this.answer.end(this.body, 'utf8');
    };
    if (this.body.includes('wait')) this.waiting.push(send);
    else send();
  }

  abandon(): void {
    this.isAbandoned = true;
  }
}

let server: Server;
let direct: DirectServer;
let client: Socket;
let text: string;
let waiting: (() => void)[];
let echoes: Echo[];
let nodeSaw: string[];

beforeEach(async () => {
  [waiting, echoes, nodeSaw, text] = [[], [], [], ''];
  server = createServer((request, response) => {
    nodeSaw.push(`${request.method ?? ''} ${request.url ?? ''}`);
    request.resume().on('end', () => response.end('node'));
  });
  const routes = {
    routeOf: (path: string) => (path === '/echo' ? ({} as OpenRoute) : undefined),
    open: (_route: OpenRoute, _headers: object, answer: RawAnswer) => {
      const echo = new Echo(answer, waiting);
      echoes.push(echo);
      return echo as unknown as DirectExchange;
    },
  } as unknown as DirectRoutes;
  direct = new DirectServer(server, routes, new ManualTimers(new FixedClock()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true });
  client.on('data', (bytes) => (text += bytes.toString()));
  client.on('error', () => undefined);
  await once(client, 'connect');
});

afterEach(async () => {
  client.destroy();
  direct.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = (path: string, body: string): string => `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const bodies = (): string[] => text.split(/HTTP\/1\.1 \d+ /).slice(1).map((answer) => answer.slice(answer.indexOf('\r\n\r\n') + 4));
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    if (client.destroyed) throw new Error(`the connection closed after ${text}`);
    await Promise.race([once(client, 'data'), once(client, 'close')]);
  }
}
/** Lets everything that was sent arrive: the server reads it before it answers this. */
async function settled(): Promise<void> {
  const other = connect((server.address() as AddressInfo).port, '127.0.0.1');
  other.write('GET /settled HTTP/1.1\r\nhost: a\r\n\r\n');
  await once(other, 'data');
  other.destroy();
}

describe('connections of our own', () => {
  test('answer one request after the other, however the bytes are cut', async () => {
    client.write(post('/echo', 'one'));
    await until(() => bodies().at(0) === 'one');
    client.write(post('/echo', 'twothree').slice(0, -5));
    await settled();
    client.write('three');
    await until(() => bodies().at(1) === 'twothree');
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\ncontent-length: 3\r\ndate: [^\r]+ GMT\r\nconnection: keep-alive\r\nkeep-alive: timeout=75\r\n\r\none/);
    expect(nodeSaw).toEqual(['GET /settled']);
  });

  test('answer requests that were sent together in their order, and one only after the other', async () => {
    client.write(post('/echo', 'wait a') + post('/echo', 'b') + post('/echo', 'wait c'));
    await settled();
    expect([text, echoes.length]).toEqual(['', 1]);
    waiting.shift()?.();
    await until(() => bodies().length === 2);
    expect(bodies()).toEqual(['wait a', 'b']);
    waiting.shift()?.();
    await until(() => bodies().length === 3);
  });

  test('go over to Node with the first request that is not plain, and stay there', async () => {
    client.write(post('/echo', 'wait') + post('/other', 'x') + post('/echo', 'y'));
    await settled();
    expect(nodeSaw).toEqual(['GET /settled']);
    waiting.shift()?.();
    await until(() => bodies().length === 3);
    expect([bodies()[0], bodies()[1]?.includes('node')]).toEqual(['wait', true]);
    expect(nodeSaw).toEqual(['GET /settled', 'POST /other', 'POST /echo']);
  });

  test('a head that comes in pieces is Node\'s', async () => {
    client.write('POST /ec');
    await settled();
    client.write('ho HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx');
    await until(() => text.includes('node'));
    expect(echoes).toEqual([]);
  });

  test('a request that is refused for its size ends the connection, and the rest of its body is nobody\'s request', async () => {
    client.write(`${post('/echo', '').replace('content-length: 0', 'content-length: 5000')}${post('/other', '')}`);
    await once(client, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(nodeSaw).toEqual([]);
  });

  test('a client that leaves is told to its request, in the body and before the answer', async () => {
    client.write(post('/echo', 'abc').slice(0, -1));
    await settled();
    client.destroy();
    await settled();
    expect(echoes[0]?.isAbandoned).toBe(true);
  });

  test('closing ends what is idle at once and the rest after its answer', async () => {
    client.write(post('/echo', 'wait'));
    await settled();
    direct.close();
    const closed = once(client, 'close');
    waiting.shift()?.();
    await closed;
    expect(bodies()).toEqual(['wait']);
  });
});
