import { describe, expect, test } from '@jest/globals';
import type { FleetState, ReplicaState } from '@penstock/domain-lifecycle';
import { RoutingMemories, type KvEvent, type KvEventSource } from '@penstock/domain-routing';
import type { LiveProjection } from '@penstock/kernel';
import { FixedClock, ManualTimers } from '@penstock/testing-kit';
import { CacheWatch, WATCH_INTERVAL_MS } from './cache-watch.js';

class ScriptedSource implements KvEventSource {
  readonly open = new Map<string, { onEvents(events: readonly KvEvent[]): void; onEnd(): void }>();

  offers({ engine }: { readonly engine: string }): boolean {
    return engine === 'engine-sim';
  }

  watch({ url }: { readonly url: string }, listener: { onEvents(events: readonly KvEvent[]): void; onEnd(): void }): { close(): void } {
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
  return { timers, source, memories, replicas, put, watch: new CacheWatch(source, memories, fleet, timers) };
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
});
