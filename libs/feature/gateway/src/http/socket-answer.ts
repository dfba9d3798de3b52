import { STATUS_CODES } from 'node:http';
import type { RawAnswer } from './raw-answer.js';

/** What an answer is written to. */
export interface AnswerConnection {
  readonly isGone: boolean;
  write(text: string, encoding: 'latin1' | 'utf8'): boolean;
  /** The answer is complete; the connection carries no other request where `mayStay` is false. */
  answered(mayStay: boolean): void;
  destroy(): void;
}

/** What may stand in a header: no line break above all. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

let dateLine = '';
let dateSecond = 0;

/** The `date` of answers changes once a second. */
function currentDateLine(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateLine = `date: ${new Date(second * 1_000).toUTCString()}\r\n`;
  }
  return dateLine;
}

/** One answer of HTTP/1.1 on a connection of our own, its head and its first bytes in one write. */
export class SocketAnswer implements RawAnswer {
  statusCode = 200;
  headersSent = false;
  chunkedEncoding = false;
  readonly socket = null;
  private head = '';
  private mayStay = true;
  private isEnded = false;
  private onClose: (() => void)[] | undefined;
  private onDrain: (() => void)[] | undefined;

  /** `keepAlive` is what the client is told of a connection that stays, as header lines. */
  constructor(private readonly connection: AnswerConnection, private readonly keepAlive: string) {}

  get destroyed(): boolean {
    return this.connection.isGone;
  }

  writeHead(status: number, headers: Readonly<Record<string, string>>): this {
    if (this.headersSent) throw new TypeError('the head of an answer is written once');
    this.headersSent = true;
    this.statusCode = status;
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
    // One look at all values costs less than one at each.
    let values = '';
    for (const name in headers) {
      const value = headers[name] ?? '';
      values += value;
      head += `${name}: ${value}\r\n`;
    }
    if (!VALUE.test(values)) throw new TypeError(`one of the headers ${Object.keys(headers).join(', ')} holds what no header may`);
    if (headers['connection'] === 'close') this.mayStay = false;
    this.chunkedEncoding = headers['content-length'] === undefined;
    this.head = `${head}${currentDateLine()}${this.mayStay ? this.keepAlive : ''}${this.chunkedEncoding ? 'transfer-encoding: chunked\r\n' : ''}\r\n`;
    return this;
  }

  write(text: string, encoding: 'latin1' | 'utf8'): boolean {
    if (this.isEnded) return true;
    const all = this.head + text;
    this.head = '';
    return this.connection.write(all, encoding);
  }

  end(text: string, encoding: 'latin1' | 'utf8'): this {
    if (this.isEnded) return this;
    this.write(text, encoding);
    this.isEnded = true;
    this.connection.answered(this.mayStay);
    return this;
  }

  /** An answer that is complete tells nothing more. */
  once(event: 'close' | 'drain', call: () => void): this {
    if (event === 'close') (this.onClose ??= []).push(call);
    else (this.onDrain ??= []).push(call);
    return this;
  }

  destroy(): void {
    this.connection.destroy();
  }

  /** The connection closed before the answer was complete. */
  closed(): void {
    for (const call of this.onClose?.splice(0) ?? []) call();
  }

  /** The client took what was written. */
  drained(): void {
    for (const call of this.onDrain?.splice(0) ?? []) call();
  }
}
