import type { KvEvent, KvEventSource, WatchedReplica } from '@penstock/domain-routing';
import { SimKvEvents } from './engine-sim/sim-kv-events.js';
import { VllmKvEvents } from './vllm/vllm-kv-events.js';

/** The cache events of every engine that offers some. */
export class KvEventsByEngine implements KvEventSource {
  private readonly sources: readonly KvEventSource[] = [new SimKvEvents(), new VllmKvEvents()];

  offers(replica: Pick<WatchedReplica, 'engine' | 'kvEventsPort'>): boolean {
    return this.sourceOf(replica) !== undefined;
  }

  watch(replica: WatchedReplica, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void } {
    const source = this.sourceOf(replica);
    if (source === undefined) throw new Error(`${replica.engine} offers no cache events; ask offers() first`);
    return source.watch(replica, listener);
  }

  private sourceOf(replica: Pick<WatchedReplica, 'engine' | 'kvEventsPort'>): KvEventSource | undefined {
    return this.sources.find((source) => source.offers(replica));
  }
}
