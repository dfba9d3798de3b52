import type { KvEvent, KvEventSource, WatchedReplica } from '@penstock/domain-routing';
import { engineRequest } from '../http/engine-http.js';
import { readKvEventBatch } from './kv-event-batch.js';
import { subscribeZmtp } from './zmtp-subscriber.js';

const METRICS_TIMEOUT_MS = 5_000;

type CacheSize = Extract<KvEvent, { kind: 'cache-size' }>;

/**
 * Cache events of vLLM, from the ZeroMQ socket that `--kv-events-config` opens on the engine's host. They say what changes and never
 * what is there: the count begins with all that `vllm:cache_config_info` says the cache can hold, or with nothing where the first
 * message is the engine's very first, so it is never below the truth. vLLM also tells of blocks that it used again as stored, which
 * is why counts are capped. A lost message or connection ends the watch: whoever watches begins anew.
 */
export class VllmKvEvents implements KvEventSource {
  offers({ engine, kvEventsPort }: Pick<WatchedReplica, 'engine' | 'kvEventsPort'>): boolean {
    return engine === 'vllm' && kvEventsPort !== null;
  }

  watch({ url, kvEventsPort }: Pick<WatchedReplica, 'url' | 'kvEventsPort'>, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void } {
    let subscription: { close(): void } | undefined;
    let isClosed = false;
    void readCapacity(url).then((capacity) => {
      if (isClosed) return;
      if (kvEventsPort === null) return void listener.onEnd();
      // URLs put IPv6 addresses in brackets.
      const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
      subscription = subscribeZmtp({ host, port: kvEventsPort }, {
        onReady: () => capacity !== undefined && listener.onEvents([capacity]),
        onMessage: batches(capacity, (events) => listener.onEvents(events)),
        onEnd: () => listener.onEnd(),
      });
    });
    return {
      close: () => {
        isClosed = true;
        subscription?.close();
      },
    };
  }
}

/** Hands on the events of messages that follow each other without a gap. */
function batches(capacity: CacheSize | undefined, onEvents: (events: readonly KvEvent[]) => void): (parts: readonly Buffer[]) => void {
  let last: number | undefined;
  return (parts) => {
    const { sequence, events } = readKvEventBatch(parts);
    if (last !== undefined && sequence !== last + 1) throw new Error(`message ${sequence} follows ${last}`);
    last = sequence;
    const isFirstOfAll = sequence === 0 && capacity !== undefined;
    onEvents(isFirstOfAll ? [{ ...capacity, blocks: 0 }, ...events] : events);
  };
}

/** How many blocks the engine's cache holds when it is full, over all its ranks; undefined when it does not say. Never rejects. */
async function readCapacity(url: string): Promise<CacheSize | undefined> {
  const reply = await engineRequest(new URL('/metrics', url).href, METRICS_TIMEOUT_MS).catch(() => undefined);
  const lines = reply?.status === 200 ? reply.text.split('\n').filter((line) => line.startsWith('vllm:cache_config_info{')) : [];
  const label = (line: string, name: string): number => Number(new RegExp(`[{,]${name}="(\\d+)"`).exec(line)?.[1] ?? NaN);
  const blocks = lines.reduce((sum, line) => sum + label(line, 'num_gpu_blocks'), 0);
  const blockTokens = label(lines[0] ?? '', 'block_size');
  return blocks > 0 && blockTokens > 0 ? { kind: 'cache-size', blocks, blockTokens, blocksMax: blocks } : undefined;
}
