import { StringDecoder } from 'node:string_decoder';
import { SseDecoder } from '@penstock/domain-serving';
import type { KvEvent, KvEventSource } from '@penstock/domain-routing';
import { z } from 'zod';

const hashes = z.array(z.number()).max(1_000_000);
const message = z.object({
  seq: z.int(),
  events: z.array(z.discriminatedUnion('type', [
    z.object({ type: z.literal('CacheSize'), blocks: z.int().nonnegative(), block_size: z.int().positive() }),
    z.object({ type: z.literal('BlockStored'), block_hashes: hashes }),
    z.object({ type: z.literal('BlockRemoved'), block_hashes: hashes }),
    z.object({ type: z.literal('AllBlocksCleared') }),
  ])).max(10_000),
});

/** Cache events of simulated engines, from their `GET /kv_events`. A gap in the numbers ends the watch: whoever watches begins anew. */
export class SimKvEvents implements KvEventSource {
  offers({ engine }: { readonly engine: string }): boolean {
    return engine === 'engine-sim';
  }

  watch({ url }: { readonly url: string }, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void } {
    const stop = new AbortController();
    read(url, stop.signal, (events) => listener.onEvents(events)).catch(() => undefined).finally(() => {
      if (!stop.signal.aborted) listener.onEnd();
    });
    return { close: () => stop.abort() };
  }
}

async function read(url: string, signal: AbortSignal, onEvents: (events: readonly KvEvent[]) => void): Promise<void> {
  const response = await fetch(new URL('/kv_events', url), { signal, headers: { accept: 'text/event-stream' } });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    return;
  }
  const decoder = new SseDecoder();
  const text = new StringDecoder('utf8');
  let last: number | undefined;
  for await (const bytes of response.body) {
    for (const data of decoder.push(text.write(Buffer.from(bytes)))) {
      const { seq, events } = message.parse(JSON.parse(data));
      if (last !== undefined && seq !== last + 1) return;
      last = seq;
      onEvents(events.map(toKvEvent));
    }
  }
}

function toKvEvent(event: z.output<typeof message>['events'][number]): KvEvent {
  switch (event.type) {
    case 'CacheSize': return { kind: 'cache-size', blocks: event.blocks, blockTokens: event.block_size };
    case 'BlockStored': return { kind: 'block-stored', blocks: event.block_hashes.length };
    case 'BlockRemoved': return { kind: 'block-removed', blocks: event.block_hashes.length };
    case 'AllBlocksCleared': return { kind: 'all-blocks-cleared' };
  }
}
