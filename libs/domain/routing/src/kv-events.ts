import type { ServingReplica } from './admission-state.js';
import type { RoutingMemory } from './routing-memory.js';

/** What an engine says of its own cache, in the words of vLLM's KV events. The hashes are the engine's: only their number is used. */
export type KvEvent =
  /** Sent first, and after messages were lost: what the cache holds, or at most holds, and how much it can hold where that is known. */
  | { readonly kind: 'cache-size'; readonly blocks: number; readonly blockTokens: number; readonly blocksMax?: number }
  | { readonly kind: 'block-stored'; readonly blocks: number }
  | { readonly kind: 'block-removed'; readonly blocks: number }
  | { readonly kind: 'all-blocks-cleared' };

/** A replica as far as its cache events go. */
export interface WatchedReplica extends Pick<ServingReplica, 'engine' | 'url'> {
  /** The port of the engine's host where it publishes them apart from its API; null where none is named. */
  readonly kvEventsPort: number | null;
}

/** Where the cache events of replicas come from; engines that offer none are not watched. */
export interface KvEventSource {
  offers(replica: Pick<WatchedReplica, 'engine' | 'kvEventsPort'>): boolean;
  /** `onEnd` is called once when the stream is over, and not after `close`. */
  watch(replica: WatchedReplica, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void };
}

/**
 * Counts what one replica's cache holds, and takes from the memory what it can no longer hold. It never takes more: which blocks the
 * engine forgot is not known, for its hashes are of tokens and ours of text, but it forgets as the memory does, oldest first.
 */
export class CacheCensus {
  private blocks: number | undefined;
  private blockTokens = 0;
  private blocksMax = Infinity;

  /** Takes one message of the replica in. */
  count(events: readonly KvEvent[], replicaId: string, memory: RoutingMemory | undefined): void {
    let shrank = false;
    for (const event of events) {
      if (event.kind === 'all-blocks-cleared') memory?.trim(replicaId, 0);
      shrank ||= event.kind !== 'block-stored';
      this.apply(event);
    }
    if (shrank && this.blocks !== undefined) memory?.trim(replicaId, this.blocks * this.blockTokens);
  }

  private apply(event: KvEvent): void {
    switch (event.kind) {
      case 'cache-size':
        this.blocks = event.blocks;
        this.blockTokens = event.blockTokens;
        this.blocksMax = event.blocksMax ?? Infinity;
        break;
      case 'block-stored':
        if (this.blocks !== undefined) this.blocks = Math.min(this.blocksMax, this.blocks + event.blocks);
        break;
      case 'block-removed':
        if (this.blocks !== undefined) this.blocks = Math.max(0, this.blocks - event.blocks);
        break;
      case 'all-blocks-cleared':
        this.blocks = 0;
        break;
    }
  }
}
