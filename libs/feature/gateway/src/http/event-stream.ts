import { sseComment, sseFrame } from '@penstock/domain-serving';
import type { Timers } from '@penstock/kernel';
import type { FastifyReply } from 'fastify';

const HEARTBEAT_INTERVAL_MS = 10_000;
/** What may wait for a client that reads slowly; it is cut off beyond. In bytes. */
const BUFFERED_BYTES_MAX = 4 * 1_024 * 1_024;

/** An endless event stream to one client of the admin API. */
export class EventStream {
  /** Resolves when the client went away. */
  readonly gone: Promise<void>;
  private readonly stopHeartbeat: () => void;

  /** Sends the headers. */
  constructor(private readonly reply: FastifyReply, timers: Timers) {
    const { raw } = reply;
    const headers = Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]));
    this.gone = new Promise((resolve) => raw.once('close', resolve));
    reply.hijack();
    raw.writeHead(200, { ...headers, 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache, must-revalidate' });
    raw.flushHeaders();
    this.stopHeartbeat = timers.every(HEARTBEAT_INTERVAL_MS, () => {
      if (!raw.destroyed) raw.write(sseComment('waiting'));
    });
  }

  send(value: unknown): void {
    const { raw } = this.reply;
    if (raw.destroyed) return;
    raw.write(sseFrame(value));
    if (raw.writableLength > BUFFERED_BYTES_MAX) raw.destroy();
  }

  close(): void {
    this.stopHeartbeat();
    this.reply.raw.destroy();
  }
}
