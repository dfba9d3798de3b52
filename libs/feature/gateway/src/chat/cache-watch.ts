import type { FleetState } from '@penstock/domain-lifecycle';
import { CacheCensus, type KvEventSource, type RoutingMemories } from '@penstock/domain-routing';
import type { LiveProjection, Timers } from '@penstock/kernel';

/** Replicas whose cache one gateway watches at once. */
export const WATCHES_MAX = 256;
/** How often watches are brought in line with the fleet; a stream that ended is opened again then. */
export const WATCH_INTERVAL_MS = 2_000;

/** Watches the caches of replicas where there is a choice between several, and their engine says what it holds. */
export class CacheWatch {
  private readonly watches = new Map<string, { close(): void }>();
  private readonly stopTimer: () => void;

  constructor(private readonly source: KvEventSource, private readonly memories: RoutingMemories, private readonly fleet: LiveProjection<FleetState>, timers: Timers) {
    this.stopTimer = timers.every(WATCH_INTERVAL_MS, () => this.align());
  }

  close(): void {
    this.stopTimer();
    for (const watch of this.watches.values()) watch.close();
  }

  private align(): void {
    const ready = [...this.fleet.state().replicas.values()].filter(({ phase, url, engine }) => phase === 'ready' && url !== null && engine !== null && this.source.offers({ engine }));
    const replicasOf = Map.groupBy(ready, ({ endpointId }) => endpointId);
    const wanted = new Map(ready.filter(({ endpointId }) => (replicasOf.get(endpointId)?.length ?? 0) > 1 && this.memories.find(endpointId) !== undefined).slice(0, WATCHES_MAX).map((replica) => [replica.replicaId, replica]));
    for (const [replicaId, watch] of this.watches) {
      if (wanted.has(replicaId)) continue;
      watch.close();
      this.watches.delete(replicaId);
    }
    for (const { replicaId, endpointId, url } of wanted.values()) if (!this.watches.has(replicaId) && url !== null) this.watch(replicaId, endpointId, url);
  }

  private watch(replicaId: string, endpointId: string, url: string): void {
    const census = new CacheCensus();
    this.watches.set(replicaId, this.source.watch({ url }, {
      onEvents: (events) => census.count(events, replicaId, this.memories.find(endpointId)),
      onEnd: () => this.watches.delete(replicaId),
    }));
  }
}
