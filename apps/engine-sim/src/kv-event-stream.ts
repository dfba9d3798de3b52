import type { ServerResponse } from 'node:http';

/** Readers of cache events at once. */
const READERS_MAX = 64;
/** A reader that is further behind is let go; it comes back and gets the size of the cache anew. */
const BEHIND_BYTES_MAX = 1_048_576;
/** Changes of one step go in one message. */
const FLUSH_MS = 20;

/** Tells readers of `GET /kv_events` which blocks enter and leave the cache, as vLLM's KV events do over ZeroMQ. Here as server-sent events, each with a number. */
export class KvEventStream {
  private readonly readers = new Set<ServerResponse>();
  private stored: number[] = [];
  private removed: number[] = [];
  private sequence = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly cache: () => { readonly blocks: number; readonly blockTokens: number }) {}

  /** False when there are too many readers already. */
  add(response: ServerResponse): boolean {
    if (this.readers.size >= READERS_MAX) return false;
    // What happened before is in the size that the newcomer gets.
    this.flush();
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const { blocks, blockTokens } = this.cache();
    response.write(frame(this.sequence, [{ type: 'CacheSize', blocks, block_size: blockTokens }]));
    this.readers.add(response);
    response.once('close', () => this.readers.delete(response));
    return true;
  }

  note(change: 'stored' | 'removed', key: number): void {
    if (this.readers.size === 0) return;
    (change === 'stored' ? this.stored : this.removed).push(key);
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS).unref();
  }

  close(): void {
    clearTimeout(this.timer);
    for (const reader of this.readers) reader.destroy();
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const events = [
      ...(this.removed.length === 0 ? [] : [{ type: 'BlockRemoved', block_hashes: this.removed }]),
      ...(this.stored.length === 0 ? [] : [{ type: 'BlockStored', block_hashes: this.stored, block_size: this.cache().blockTokens }]),
    ];
    this.stored = [];
    this.removed = [];
    if (events.length === 0) return;
    this.sequence += 1;
    const text = frame(this.sequence, events);
    for (const reader of this.readers) {
      if (reader.writableLength > BEHIND_BYTES_MAX) reader.destroy();
      else reader.write(text);
    }
  }
}

function frame(sequence: number, events: readonly object[]): string {
  return `data: ${JSON.stringify({ seq: sequence, events })}\n\n`;
}
