import { StringDecoder } from 'node:string_decoder';
import type { ConnectionListener, EngineConnection } from './engine-connection.js';
import type { Connections } from './replica-clients.js';

export interface EngineRequest {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What an engine is told of the request that it works on. */
export interface RequestOrigin {
  readonly requestId: string;
  readonly traceparent: string | undefined;
}

export function engineHeaders({ requestId, traceparent }: RequestOrigin, accept: string): Readonly<Record<string, string>> {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept, 'accept-encoding': 'identity', 'x-request-id': requestId };
  if (traceparent !== undefined) headers['traceparent'] = traceparent;
  return headers;
}

/** What an engine sends, as it comes. Nothing is called after `abort`. */
export interface EngineListener {
  onStatus(status: number): void;
  onText(text: string): void;
}

/** How a call ended. `lost` says that the connection broke; nothing of the answer had come when `beforeAnswer` is true. */
export type EngineEnd = { readonly kind: 'ended' } | { readonly kind: 'aborted' } | { readonly kind: 'lost'; readonly beforeAnswer: boolean; readonly error: Error };

const ended: EngineEnd = { kind: 'ended' };
const aborted: EngineEnd = { kind: 'aborted' };

/** One request to an engine, with back-pressure, that can be given up at any moment. */
export class EngineCall implements ConnectionListener {
  private connection: EngineConnection | undefined;
  private connections: Connections | undefined;
  private listener: EngineListener | undefined;
  private resolve: ((end: EngineEnd) => void) | undefined;
  private readonly decoder = new StringDecoder('utf8');
  private hasAnswer = false;
  private isAborted = false;
  private isPaused = false;

  /** Sends the request; resolves when the answer is over, in whichever way. */
  send(connections: Connections, request: EngineRequest, listener: EngineListener): Promise<EngineEnd> {
    if (this.isAborted) return Promise.resolve(aborted);
    this.connections = connections;
    this.listener = listener;
    this.connection = connections.take();
    if (this.isPaused) this.connection.pause();
    this.connection.send(connections.pathPrefix + request.path, request.headers, request.body, this);
    return new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** Closes the connection, which makes the engine stop. */
  abort(): void {
    if (this.isAborted) return;
    this.isAborted = true;
    if (this.resolve === undefined) return;
    this.connection?.destroy();
    this.end(aborted);
  }

  pause(): void {
    this.isPaused = true;
    this.connection?.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.connection?.resume();
  }

  onHead(status: number): void {
    this.hasAnswer = true;
    this.listener?.onStatus(status);
  }

  onBody(bytes: Buffer): void {
    if (!this.isAborted) this.listener?.onText(this.decoder.write(bytes));
  }

  onComplete(): void {
    this.end(ended);
  }

  onLost(error: Error): void {
    this.end({ kind: 'lost', beforeAnswer: !this.hasAnswer, error });
  }

  private end(how: EngineEnd): void {
    const { resolve, connection, connections } = this;
    if (resolve === undefined) return;
    this.resolve = undefined;
    this.connection = undefined;
    if (connection !== undefined) {
      // Whoever gets it next wants to read.
      if (this.isPaused) connection.resume();
      connections?.give(connection);
    }
    resolve(how);
  }
}

const STALE_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** The engine closed a kept connection in the moment it was used again: the same request may go out on a new one. */
export function isStaleConnection(end: EngineEnd): boolean {
  return end.kind === 'lost' && end.beforeAnswer && STALE_CODES.has((end.error as NodeJS.ErrnoException).code ?? '');
}
