import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const TEST_TOKEN = 'internal-token-for-tests';

/** One request as the gateway saw it. */
export interface SeenLine {
  readonly path: string;
  readonly customId: string;
  readonly requestId: string;
  readonly tenant: unknown;
  readonly bodyText: string;
}

/** What the gateway does with a request: a status with optional headers, `hang`, or `reset` of the connection. */
export type LineBehaviour = { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string } | 'hang' | 'reset';

/** Answers batch lines over HTTP as the gateway does. The `custom` field of a body names its line. */
export class FakeGateway {
  readonly seen: SeenLine[] = [];
  readonly answered: string[] = [];
  running = 0;
  runningMax = 0;
  behave: (line: SeenLine, index: number) => LineBehaviour | Promise<LineBehaviour> = () => ({ status: 200 });
  private server: Server | undefined;
  private port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts, after a stop on the same port. */
  async start(): Promise<void> {
    this.server = createServer((request, response) => void this.take(request, response));
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    const { server } = this;
    if (server === undefined) return;
    this.server = undefined;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  /** Requests per custom id that were answered with 2xx. */
  successes(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const customId of this.answered) counts.set(customId, (counts.get(customId) ?? 0) + 1);
    return counts;
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const bodyText = Buffer.concat(parts).toString('utf8');
    if (request.headers['x-penstock-internal'] !== TEST_TOKEN || !['/v1/chat/completions', '/v1/responses'].includes(request.url ?? '')) return void response.writeHead(401).end('{"error":{}}');
    const { custom } = JSON.parse(bodyText) as { custom: string };
    const line = { path: request.url ?? '', customId: custom, requestId: String(request.headers['x-penstock-request-id']), tenant: JSON.parse(String(request.headers['x-penstock-tenant'])) as unknown, bodyText };
    this.seen.push(line);
    this.running += 1;
    this.runningMax = Math.max(this.runningMax, this.running);
    const behaviour = await this.behave(line, this.seen.length - 1);
    this.running -= 1;
    if (behaviour === 'hang') return;
    if (behaviour === 'reset') return void response.destroy();
    if (behaviour.status < 300) this.answered.push(custom);
    response.writeHead(behaviour.status, { 'content-type': 'application/json', 'x-request-id': line.requestId, ...behaviour.headers });
    response.end(behaviour.body ?? JSON.stringify({ id: 'chatcmpl-1', echo: custom, status: behaviour.status }, null, 1));
  }
}
