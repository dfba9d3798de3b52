import type { Socket } from 'node:net';

/** The part of a Node answer that the routes of the data plane write to; `ServerResponse` is one. */
export interface RawAnswer {
  readonly statusCode: number;
  readonly headersSent: boolean;
  /** Nobody reads any more. */
  readonly destroyed: boolean;
  /** Null where the answer is written through itself. */
  readonly socket: Socket | null;
  /** True once the head was written and what follows has to be framed in chunks. */
  chunkedEncoding: boolean;
  writeHead(status: number, headers: Readonly<Record<string, string>>): unknown;
  /** False when the client takes less than it is given: `drain` tells when there is room. */
  write(text: string, encoding: 'latin1' | 'utf8'): boolean;
  end(text: string, encoding: 'latin1' | 'utf8'): unknown;
  once(event: 'close' | 'drain', call: () => void): unknown;
  destroy(): unknown;
}
