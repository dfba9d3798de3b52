import type { Socket } from 'node:net';
import type { DirectExchange, DirectRoutes } from './direct-routes.js';
import { readRequestHead } from './request-head.js';
import { SocketAnswer, type AnswerConnection } from './socket-answer.js';

/** Of requests that a client sent before it had its answer, so much is held; then it is not read from. In bytes. */
const HELD_BYTES_MAX = 64 * 1_024;
const HEAD_END = '\r\n\r\n';

export interface DirectConnectionParts {
  readonly routes: DirectRoutes;
  /** Larger heads are left to Node, which refuses them. In bytes. */
  readonly headBytesMax: number;
  /** Header lines of an answer that leaves the connection open. */
  readonly keepAlive: string;
  /** Node's own HTTP takes the connection over, with these bytes unread. */
  readonly handOver: (connection: DirectConnection, socket: Socket, unread: Buffer) => void;
  readonly onClose: (connection: DirectConnection) => void;
  /** No further request is taken. */
  readonly isClosing: () => boolean;
}

/** What a connection is doing: nothing was ever sent, it waits for a request, for the rest of a body, or for the answer. */
export type ConnectionPhase = 'unused' | 'idle' | 'body' | 'answer';

/**
 * One connection of a client, one request after the other, read without Node's HTTP as long as each of them is a plain call of a
 * direct route. The first other one, and everything after it, is Node's.
 */
export class DirectConnection implements AnswerConnection {
  /** Since when it is in its phase. */
  sinceMs: number;
  private phaseNow: ConnectionPhase = 'unused';
  private exchange: DirectExchange | undefined;
  private answer: SocketAnswer | undefined;
  private bodyLeft = 0;
  /** Bytes of the requests that come after the one in work. */
  private held: Buffer | undefined;
  private isReading = false;
  private mayStay = true;
  private readonly onData = (bytes: Buffer): void => this.take(bytes);
  private readonly onEnd = (): void => void this.socket.end();
  private readonly onError = (): void => undefined;
  private readonly onDrain = (): void => this.drained();
  private readonly onClose = (): void => this.closed();

  constructor(readonly socket: Socket, private readonly parts: DirectConnectionParts, nowMs: number) {
    this.sinceMs = nowMs;
    socket.on('data', this.onData).on('end', this.onEnd).on('error', this.onError).on('drain', this.onDrain).on('close', this.onClose);
  }

  get phase(): ConnectionPhase {
    return this.phaseNow;
  }

  get isGone(): boolean {
    return this.socket.destroyed || !this.socket.writable;
  }

  /** Part of an answer waits for the client to read. */
  get hasUnsent(): boolean {
    return this.socket.writableLength > 0;
  }

  /** Ends the connection once everything was sent; what the client may still send is not waited for. */
  endSoon(): void {
    const { socket } = this;
    socket.end(() => socket.destroy());
  }

  write(text: string, encoding: 'latin1' | 'utf8'): boolean {
    return this.isGone || this.socket.write(text, encoding);
  }

  answered(mayStay: boolean): void {
    this.mayStay = mayStay;
    this.answer = undefined;
    // The rest of a body that was refused early is read over, unless the connection goes.
    if (this.phaseNow === 'answer' || !mayStay) this.finish();
  }

  destroy(): void {
    this.socket.destroy();
  }

  private take(bytes: Buffer): void {
    // What comes after the end is nobody's.
    if (this.isGone) return;
    if (this.phaseNow === 'body') this.takeBody(bytes);
    else if (this.phaseNow === 'answer' || this.held !== undefined) this.hold(bytes);
    else this.read(bytes);
  }

  private hold(bytes: Buffer): void {
    this.held = this.held === undefined ? bytes : Buffer.concat([this.held, bytes]);
    if (this.held.length > HELD_BYTES_MAX) this.socket.pause();
  }

  /** Reads the requests that `bytes` hold, up to one that has to be waited for. */
  private read(bytes: Buffer): void {
    this.held = bytes;
    if (this.isReading) return;
    this.isReading = true;
    while (this.held !== undefined && this.phaseNow !== 'answer' && this.phaseNow !== 'body' && !this.isGone) {
      const next: Buffer = this.held;
      this.held = undefined;
      if (next.length > 0 && !this.begin(next)) {
        this.leave(next);
        break;
      }
    }
    this.isReading = false;
  }

  /** Begins the request at the start of `bytes`; false when it is one for Node. */
  private begin(bytes: Buffer): boolean {
    const end = bytes.indexOf(HEAD_END, 0, 'latin1');
    if (end < 0 || end > this.parts.headBytesMax) return false;
    const head = readRequestHead(bytes.toString('latin1', 0, end));
    const route = head === undefined ? undefined : this.parts.routes.routeOf(head.path, head.headers);
    if (head === undefined || route === undefined) return false;
    const bodyStart = end + HEAD_END.length;
    const bodyEnd = bodyStart + head.contentLength;
    this.sinceMs = performance.now();
    this.phaseNow = 'body';
    this.bodyLeft = head.contentLength;
    this.answer = new SocketAnswer(this, this.parts.keepAlive);
    this.exchange = this.parts.routes.open(route, head.headers, this.answer);
    this.exchange.begin(head.contentLength);
    if (bytes.length > bodyEnd) this.held = bytes.subarray(bodyEnd);
    if (!this.isGone) this.takeBody(bytes.length > bodyEnd ? bytes.subarray(bodyStart, bodyEnd) : bytes.subarray(bodyStart));
    return true;
  }

  private takeBody(bytes: Buffer): void {
    const { exchange } = this;
    const body = bytes.length > this.bodyLeft ? bytes.subarray(0, this.bodyLeft) : bytes;
    if (body !== bytes) this.held = bytes.subarray(body.length);
    this.bodyLeft -= body.length;
    if (body.length > 0) exchange?.collect(body);
    if (this.bodyLeft > 0) return;
    const isAnswered = this.answer === undefined;
    this.phaseNow = 'answer';
    if (isAnswered) this.finish();
    else exchange?.complete();
  }

  /** The request is over, its body and its answer. */
  private finish(): void {
    this.exchange = undefined;
    this.phaseNow = 'idle';
    this.sinceMs = performance.now();
    const { held, socket } = this;
    if (!this.mayStay || this.parts.isClosing()) {
      this.held = undefined;
      this.endSoon();
    } else if (held !== undefined) {
      // A client that takes no answers gets no further one made.
      if (!socket.writableNeedDrain) this.goOn();
    }
  }

  private goOn(): void {
    const { held, socket } = this;
    if (held === undefined || this.phaseNow === 'answer' || this.phaseNow === 'body' || this.isGone) return;
    if (socket.isPaused()) socket.resume();
    this.read(held);
  }

  private drained(): void {
    if (this.answer !== undefined) this.answer.drained();
    else this.goOn();
  }

  private leave(unread: Buffer): void {
    const { socket } = this;
    socket.off('data', this.onData).off('end', this.onEnd).off('error', this.onError).off('drain', this.onDrain).off('close', this.onClose);
    this.parts.handOver(this, socket, unread);
  }

  private closed(): void {
    const { answer, exchange } = this;
    this.parts.onClose(this);
    this.answer = undefined;
    this.exchange = undefined;
    this.held = undefined;
    exchange?.abandon();
    answer?.closed();
  }
}
