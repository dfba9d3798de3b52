import { describeError, toOpenAiError, type ApiFault } from '@penstock/contract-http';
import { sseComment, sseFrame, SSE_DONE } from '@penstock/domain-serving';
import type { FastifyReply } from 'fastify';
import type { ServerResponse } from 'node:http';

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, must-revalidate',
  'x-accel-buffering': 'no',
};

/** The client's side of one chat request: headers as late as possible, back-pressure, and whether anybody still listens. */
export class ClientAnswer {
  private readonly raw: ServerResponse;
  private hasHeaders = false;
  private isOver = false;
  private blockedSinceMs: number | undefined;

  constructor(private readonly reply: FastifyReply, private readonly now: () => number) {
    this.raw = reply.raw;
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

  /** Sends the headers of a stream. From here on an error can only be an event of it. */
  startStream(): void {
    if (this.hasHeaders || this.isGone) return;
    this.hasHeaders = true;
    this.reply.hijack();
    this.raw.writeHead(200, { ...this.ownHeaders(), ...STREAM_HEADERS });
    this.raw.flushHeaders();
  }

  heartbeat(comment: string): void {
    this.startStream();
    if (!this.raw.destroyed && this.blockedSinceMs === undefined) this.raw.write(sseComment(comment));
  }

  /** Hands frames to the socket. Calls `onDrain` later when it could not take them at once; returns whether it could. */
  write(frames: string, onDrain: () => void): boolean {
    this.startStream();
    if (this.raw.destroyed) return true;
    if (this.raw.write(frames)) return true;
    if (this.blockedSinceMs === undefined) {
      this.blockedSinceMs = this.now();
      this.raw.once('drain', () => {
        this.blockedSinceMs = undefined;
        onDrain();
      });
    }
    return false;
  }

  /** The last frames of a stream that went well. */
  endStream(frames: string): void {
    this.startStream();
    this.isOver = true;
    this.raw.end(frames + SSE_DONE);
  }

  /** Ends a stream that has begun with an error event: no finish reason is made up. */
  failStream(fault: ApiFault): void {
    this.isOver = true;
    this.raw.end(sseFrame(toOpenAiError(fault)) + SSE_DONE);
  }

  /** A whole answer at once. */
  sendJson(body: string): void {
    this.hasHeaders = true;
    this.isOver = true;
    this.reply.hijack();
    this.raw.writeHead(200, { ...this.ownHeaders(), 'content-type': 'application/json; charset=utf-8', 'content-length': String(Buffer.byteLength(body)) });
    this.raw.end(body);
  }

  /** Gives up a client that takes nothing. */
  drop(): void {
    this.raw.destroy();
  }

  private ownHeaders(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.reply.getHeaders()).map(([name, value]) => [name, String(value)]));
  }
}

/** The status that an error would have had, for records of streams whose headers were gone. */
export function statusOf(fault: { readonly code: string }): number {
  return describeError(fault.code).status;
}
