import { describeError, toOpenAiError, type ApiFault } from '@penstock/contract-http';
import { sseComment, sseFrame, SSE_DONE } from '@penstock/domain-serving';
import type { Socket } from 'node:net';
import type { RawAnswer } from '../http/raw-answer.js';
import type { AnswerTarget } from '../http/route-call.js';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, must-revalidate',
  'x-accel-buffering': 'no',
};

/** The client's side of one chat request: headers as late as possible, back-pressure, and whether anybody still listens. */
export class ClientAnswer {
  private readonly raw: RawAnswer;
  private hasHeaders = false;
  private isOver = false;
  private blockedSinceMs: number | undefined;
  /** Whether chunks are framed here: one string and one write, in place of four strings that Node would gather. */
  private framesChunks = false;
  private hasSent = false;

  private readonly startedAtMs: number;

  constructor(private readonly reply: AnswerTarget, private readonly now: () => number) {
    this.raw = reply.raw;
    this.startedAtMs = now();
  }

  /** Calls once when the client goes away before its answer is complete. */
  onGone(call: () => void): void {
    this.raw.once('close', () => {
      if (!this.isOver) call();
    });
  }

  get isGone(): boolean {
    return this.raw.destroyed && !this.isOver;
  }

  get hasStarted(): boolean {
    return this.hasHeaders;
  }

  /** Since when the client has taken nothing of what is ready for it; undefined while it keeps up. */
  get blockedSince(): number | undefined {
    return this.blockedSinceMs;
  }

  /** Begins a stream. From here on an error can only be an event of it. */
  startStream(): void {
    if (this.hasHeaders || this.isGone) return;
    this.hasHeaders = true;
    this.reply.hijack();
    // The headers go out with the first bytes of the stream, in the same turn.
    this.raw.writeHead(200, { ...this.ownHeaders(), ...STREAM_HEADERS });
    // Node has decided by now; for a client of HTTP/1.0 it does not chunk.
    this.framesChunks = this.raw.chunkedEncoding;
    this.raw.chunkedEncoding = false;
  }

  heartbeat(comment: string): void {
    this.startStream();
    if (!this.raw.destroyed && this.blockedSinceMs === undefined) this.send(sseComment(comment));
  }

  /** Hands frames to the socket. Calls `onDrain` later when it could not take them at once; returns whether it could. */
  write(frames: string, onDrain: () => void): boolean {
    this.startStream();
    if (this.raw.destroyed) return true;
    if (this.send(frames)) return true;
    if (this.blockedSinceMs === undefined) {
      this.blockedSinceMs = this.now();
      // Whatever wrote to it, the socket tells when it has room; an answer that waits for its turn on the connection has no socket yet.
      (this.bypass ?? this.raw).once('drain', () => {
        this.blockedSinceMs = undefined;
        onDrain();
      });
    }
    return false;
  }

  /** The last frames of a stream that went well. */
  endStream(frames: string, terminator = SSE_DONE): void {
    this.startStream();
    this.isOver = true;
    this.finish(frames + terminator);
  }

  /** Ends a stream that has begun with an error event: no finish reason is made up. */
  failStream(fault: ApiFault, frames = sseFrame(toOpenAiError(fault)) + SSE_DONE): void {
    this.isOver = true;
    this.finish(frames);
  }

  /** A whole answer at once. */
  sendJson(body: string): void {
    this.hasHeaders = true;
    this.isOver = true;
    this.reply.hijack();
    const bytes = Buffer.byteLength(body);
    const headers = this.ownHeaders();
    headers['content-type'] = 'application/json; charset=utf-8';
    headers['content-length'] = String(bytes);
    this.raw.writeHead(200, headers);
    this.raw.end(body, encodingOf(body, bytes));
  }

  /** Gives up a client that takes nothing. */
  drop(): void {
    this.raw.destroy();
  }

  /** The socket itself, once the head is on its way: Node would cork it for each chunk and let go a turn later. */
  private get bypass(): Socket | undefined {
    const { socket } = this.raw;
    return this.framesChunks && this.hasSent && socket !== null && !socket.destroyed ? socket : undefined;
  }

  private send(text: string): boolean {
    const bytes = Buffer.byteLength(text);
    const framed = this.framesChunks ? `${bytes.toString(16)}\r\n${text}\r\n` : text;
    const { bypass } = this;
    this.hasSent = true;
    const encoding = encodingOf(text, bytes);
    return bypass === undefined ? this.raw.write(framed, encoding) : bypass.write(framed, encoding);
  }

  private finish(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.raw.end(this.framesChunks ? `${bytes.toString(16)}\r\n${text}\r\n0\r\n\r\n` : text, encodingOf(text, bytes));
  }

  private ownHeaders(): Record<string, string> {
    const headers: Record<string, string> = {};
    const given = this.reply.getHeaders() as Readonly<Record<string, unknown>>;
    for (const name in given) headers[name] = String(given[name]);
    headers['openai-processing-ms'] = String(Math.max(0, Math.round(this.now() - this.startedAtMs)));
    return headers;
  }
}

/** Text of one byte a character needs no encoder. */
function encodingOf(text: string, bytes: number): 'latin1' | 'utf8' {
  return bytes === text.length ? 'latin1' : 'utf8';
}

/** The status that an error would have had, for records of streams whose headers were gone. */
export function statusOf(fault: { readonly code: string }): number {
  return describeError(fault.code).status;
}
