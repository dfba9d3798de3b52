import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import { CacheCensus, type KvEventSource, type RoutingMemories, type WatchedReplica } from '@penstock/domain-routing';
import type { LiveProjection, Timers } from '@penstock/kernel';

/** Replicas whose cache one gateway watches at once. */
export const WATCHES_MAX = 256;
/** How often watches are brought in line with the fleet; a stream that ended is opened again then. */
export const WATCH_INTERVAL_MS = 2_000;
/** A replica whose streams end before they say anything is left alone for twice as many intervals each time, up to this many. */
export const REST_INTERVALS_MAX = 32;

export interface CacheWatchParts {
  readonly memories: RoutingMemories;
  readonly fleet: LiveProjection<FleetState>;
  readonly timers: Timers;
  readonly kvEventsPortOf: (endpointId: string) => number | null;
}

/** A replica that said nothing so far. */
interface Rest {
  /** Streams that ended one after the other without a word. */
  ends: number;
  /** Intervals until the next one is opened. */
  intervals: number;
}

/** Watches the caches of replicas where there is a choice between several, and their engine says what it holds. */
export class CacheWatch {
  private readonly watches = new Map<string, { close(): void }>();
  private readonly rests = new Map<string, Rest>();
  private readonly stopTimer: () => void;

  constructor(private readonly source: KvEventSource, private readonly parts: CacheWatchParts) {
    this.stopTimer = parts.timers.every(WATCH_INTERVAL_MS, () => this.align());
  }

  close(): void {
    this.stopTimer();
    for (const watch of this.watches.values()) watch.close();
  }

  private align(): void {
    const { memories, fleet } = this.parts;
    const ready = [...fleet.state().replicas.values()].flatMap((replica) => this.watchable(replica));
    const replicasOf = Map.groupBy(ready, ({ endpointId }) => endpointId);
    const wanted = new Map(ready.filter(({ endpointId }) => (replicasOf.get(endpointId)?.length ?? 0) > 1 && memories.find(endpointId) !== undefined).slice(0, WATCHES_MAX).map((replica) => [replica.replicaId, replica]));
    for (const [replicaId, watch] of this.watches) {
      if (wanted.has(replicaId)) continue;
      watch.close();
      this.watches.delete(replicaId);
    }
    for (const replicaId of this.rests.keys()) if (!wanted.has(replicaId)) this.rests.delete(replicaId);
    for (const replica of wanted.values()) if (!this.watches.has(replica.replicaId) && !this.isResting(replica.replicaId)) this.watch(replica);
  }

  private watchable({ phase, url, engine, replicaId, endpointId }: ReplicaState): readonly (WatchedReplica & Pick<ReplicaState, 'replicaId' | 'endpointId'>)[] {
    if (phase !== 'ready' || url === null || engine === null) return [];
    const replica = { replicaId, endpointId, url, engine, kvEventsPort: this.parts.kvEventsPortOf(endpointId) };
    return this.source.offers(replica) ? [replica] : [];
  }

  private isResting(replicaId: string): boolean {
    const rest = this.rests.get(replicaId);
    if (rest === undefined || rest.intervals === 0) return false;
    rest.intervals -= 1;
    return true;
  }

  private watch(replica: WatchedReplica & Pick<ReplicaState, 'replicaId' | 'endpointId'>): void {
    const { replicaId, endpointId } = replica;
    const census = new CacheCensus();
    let hasSpoken = false;
    this.watches.set(replicaId, this.source.watch(replica, {
      onEvents: (events) => {
        hasSpoken = true;
        this.rests.delete(replicaId);
        census.count(events, replicaId, this.parts.memories.find(endpointId));
      },
      onEnd: () => {
        this.watches.delete(replicaId);
        if (!hasSpoken) this.rest(replicaId);
      },
    }));
  }

  private rest(replicaId: string): void {
    const ends = (this.rests.get(replicaId)?.ends ?? 0) + 1;
    this.rests.set(replicaId, { ends, intervals: Math.min(REST_INTERVALS_MAX, 2 ** (ends - 1)) - 1 });
  }
}
