import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { MalformedResponseError, ResponseParser, type ResponseListener } from './response-parser.js';

/** What one read takes at most. It is read by whoever it is for before anything else is read, so all connections share it. */
const readBuffer = Buffer.alloc(64 * 1_024);

const CONNECT_TIMEOUT_MS = 3_000;
/** Servers in Python, and so most engines, close an idle connection after this long. */
const ENGINE_IDLE_MS = 5_000;
/** So close to that moment a connection is not used, so that we are seldom the one surprised. One that is open after it belongs to an engine that waits longer. */
const IDLE_MARGIN_MS = 1_000;
/** Connections beyond need are let go after this long. */
const IDLE_MS_MAX = 60_000;

export interface ConnectionListener extends ResponseListener {
  /** The connection broke, or what came was no answer. Nothing is called after it, nor after `onComplete`. */
  onLost(error: Error): void;
}

/** Where an engine listens. */
export interface EngineAddress {
  readonly hostname: string;
  readonly port: number;
  readonly isTls: boolean;
  /** Value of the `host` header. */
  readonly authority: string;
}

export function addressOf(url: URL): EngineAddress {
  const isTls = url.protocol === 'https:';
  return { hostname: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port === '' ? (isTls ? 443 : 80) : url.port), isTls, authority: url.host };
}

/**
 * One kept connection to an engine, with one request on it at a time. Written for one purpose and so at less than half the cost of a
 * client for all of HTTP: a POST with a known length, an answer that goes through as it comes.
 */
export class EngineConnection {
  private readonly socket: Socket;
  private listener: ConnectionListener | undefined;
  private parser: ResponseParser | undefined;
  private idleSinceMs = 0;
  private error: Error | undefined;
  private isUsable = true;

  constructor(private readonly address: EngineAddress) {
    const { hostname, port, isTls } = address;
    this.socket = isTls
      ? connectTls({ host: hostname, port, servername: hostname }).on('data', (bytes: Buffer) => this.read(bytes))
      : connectPlain({ host: hostname, port, noDelay: true, onread: { buffer: readBuffer, callback: (count) => this.readFirst(count) } });
    this.socket.setTimeout(CONNECT_TIMEOUT_MS, () => this.socket.destroy(new Error(`no connection within ${CONNECT_TIMEOUT_MS} ms`)));
    this.socket.once(isTls ? 'secureConnect' : 'connect', () => this.socket.setTimeout(0));
    this.socket.on('error', (error) => (this.error = error));
    this.socket.on('end', () => this.socket.destroy());
    this.socket.on('close', () => this.closed());
  }

  /** False for one that the engine closed, may be about to close, or that carried an unclear answer. */
  canServe(nowMs: number): boolean {
    const idleMs = nowMs - this.idleSinceMs;
    return this.isUsable && !this.socket.destroyed && idleMs < IDLE_MS_MAX && Math.abs(idleMs - ENGINE_IDLE_MS) > IDLE_MARGIN_MS;
  }

  /** `path` and the names and values of `headers` are ours: they hold no line break. */
  send(path: string, headers: Readonly<Record<string, string>>, body: string, listener: ConnectionListener): void {
    this.listener = listener;
    this.parser = new ResponseParser(this);
    const bytes = Buffer.byteLength(body);
    let head = `POST ${path} HTTP/1.1\r\nhost: ${this.address.authority}\r\n`;
    for (const name in headers) head += `${name}: ${headers[name] ?? ''}\r\n`;
    head += `content-length: ${bytes}\r\n\r\n`;
    // Text of one byte a character needs no encoder, and one write carries everything.
    this.socket.write(head + body, bytes === body.length ? 'latin1' : 'utf8');
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Gives the request up, and the connection with it: that is how an engine learns of it. */
  destroy(): void {
    this.listener = undefined;
    this.isUsable = false;
    this.socket.destroy();
  }

  onHead(status: number): void {
    this.listener?.onHead(status);
  }

  onBody(bytes: Buffer): void {
    this.listener?.onBody(bytes);
  }

  onComplete(): void {
    const { listener, parser } = this;
    this.listener = undefined;
    this.idleSinceMs = performance.now();
    if (parser?.keepsAlive !== true) {
      this.isUsable = false;
      this.socket.destroy();
    }
    listener?.onComplete();
  }

  private readFirst(count: number): boolean {
    this.read(readBuffer.subarray(0, count));
    return true;
  }

  private read(bytes: Buffer): void {
    try {
      // An engine that speaks unasked is none to talk to.
      if (this.parser === undefined) throw new MalformedResponseError('bytes before a request');
      this.parser.push(bytes);
    } catch (error) {
      this.isUsable = false;
      this.error = error instanceof Error ? error : new Error(String(error));
      this.socket.destroy();
    }
  }

  private closed(): void {
    this.isUsable = false;
    if (this.listener === undefined || this.parser?.end() === true) return;
    const { listener } = this;
    this.listener = undefined;
    listener?.onLost(this.error ?? Object.assign(new Error('the engine closed the connection'), { code: 'ECONNRESET' }));
  }
}
