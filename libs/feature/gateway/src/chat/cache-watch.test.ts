import { describe, expect, test } from '@jest/globals';
import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import { RoutingMemories, type KvEvent, type KvEventSource, type WatchedReplica } from '@penstock/domain-routing';
import type { LiveProjection } from '@penstock/kernel';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import { CacheWatch, REST_INTERVALS_MAX, WATCH_INTERVAL_MS } from './cache-watch.js';

class ScriptedSource implements KvEventSource {
  readonly ports: (number | null)[] = [];
  readonly open = new Map<string, { onEvents(events: readonly KvEvent[]): void; onEnd(): void }>();

  offers({ engine, kvEventsPort }: Pick<WatchedReplica, 'engine' | 'kvEventsPort'>): boolean {
    return engine === 'engine-sim' || kvEventsPort !== null;
  }

  watch({ url, kvEventsPort }: WatchedReplica, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void } {
    this.ports.push(kvEventsPort);
    this.open.set(url, listener);
    return { close: () => void this.open.delete(url) };
  }
}

function world() {
  const timers = new ManualTimers(new FixedClock());
  const source = new ScriptedSource();
  const memories = new RoutingMemories(() => ({ prefillMsPerToken: 1, cacheTokens: 1e6 }));
  const replicas = new Map<string, ReplicaState>();
  const put = (replicaId: string, endpointId: string, engine: string): void => {
    replicas.set(replicaId, { replicaId, endpointId, engine, url: `http://${replicaId}`, phase: 'ready' } as ReplicaState);
  };
  const fleet = { state: () => ({ replicas }) } as unknown as LiveProjection<FleetState>;
  return { timers, source, memories, replicas, put, watch: new CacheWatch(source, { memories, fleet, timers, kvEventsPortOf: (endpointId) => (endpointId === 'ep_4' ? 5_557 : null) }) };
}

const prompt = { tokens: 600, blocks: [1, 2, 3, 4], session: null };

describe('watching the caches of replicas', () => {
  test('only where a gateway chooses, and the engine tells', async () => {
    const { timers, source, memories, put, replicas } = world();
    for (const [replicaId, endpointId, engine] of [['a', 'ep_1', 'engine-sim'], ['b', 'ep_1', 'engine-sim'], ['c', 'ep_2', 'engine-sim'], ['d', 'ep_3', 'vllm'], ['e', 'ep_3', 'vllm']] as const) put(replicaId, endpointId, engine);
    await timers.advance(WATCH_INTERVAL_MS);
    expect(source.open.size).toBe(0);
    for (const endpointId of ['ep_1', 'ep_2', 'ep_3']) memories.of(endpointId);
    await timers.advance(WATCH_INTERVAL_MS);
    expect([...source.open.keys()]).toEqual(['http://a', 'http://b']);
    replicas.delete('a');
    await timers.advance(WATCH_INTERVAL_MS);
    expect(source.open.size).toBe(0);
  });

  test('what a replica forgot is nobody\'s reason to go there, and a stream that ended is opened again', async () => {
    const { timers, source, memories, put, watch } = world();
    put('a', 'ep_1', 'engine-sim');
    put('b', 'ep_1', 'engine-sim');
    memories.of('ep_1').learn('a', prompt, 0);
    await timers.advance(WATCH_INTERVAL_MS);
    source.open.get('http://a')?.onEvents([{ kind: 'cache-size', blocks: 100, blockTokens: 16 }]);
    expect(memories.of('ep_1').hitTokens('a', prompt)).toBe(512);
    source.open.get('http://a')?.onEvents([{ kind: 'all-blocks-cleared' }]);
    expect(memories.of('ep_1').hitTokens('a', prompt)).toBe(0);
    source.open.get('http://a')?.onEnd();
    source.open.delete('http://a');
    await timers.advance(WATCH_INTERVAL_MS);
    expect(source.open.has('http://a')).toBe(true);
    watch.close();
    expect(source.open.size).toBe(0);
  });

  test('the port that the endpoint names is where its engines are heard', async () => {
    const { timers, source, memories, put } = world();
    for (const replicaId of ['a', 'b']) put(replicaId, 'ep_4', 'vllm');
    memories.of('ep_4');
    await timers.advance(WATCH_INTERVAL_MS);
    expect([...source.open.keys()]).toEqual(['http://a', 'http://b']);
    expect(source.ports).toEqual([5_557, 5_557]);
  });

  test('a stream that ends before it says anything is opened ever less often, until one says something', async () => {
    const { timers, source, memories, put } = world();
    for (const replicaId of ['a', 'b']) put(replicaId, 'ep_1', 'engine-sim');
    memories.of('ep_1');
    const end = (): void => {
      const listener = source.open.get('http://a');
      source.open.delete('http://a');
      listener?.onEnd();
    };
    const waits: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      let intervals = 0;
      for (; !source.open.has('http://a'); intervals += 1) await timers.advance(WATCH_INTERVAL_MS);
      waits.push(intervals);
      end();
    }
    expect(waits).toEqual([1, 1, 2, 4, 8, 16, REST_INTERVALS_MAX, REST_INTERVALS_MAX]);
    for (let intervals = 0; intervals < REST_INTERVALS_MAX; intervals += 1) await timers.advance(WATCH_INTERVAL_MS);
    source.open.get('http://a')?.onEvents([]);
    end();
    await timers.advance(WATCH_INTERVAL_MS);
    expect(source.open.has('http://a')).toBe(true);
  });
});
