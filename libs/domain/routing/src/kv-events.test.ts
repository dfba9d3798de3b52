import { describe, expect, test } from '@jest/globals';
import { CacheCensus } from './kv-events.js';
import { RoutingMemory } from './routing-memory.js';

const tokensIn = (count: number): number => count * 100;
const prompt = (from: number) => ({ tokens: 520, blocks: [1, 2, 3, 4, 5].map((key) => from * 10 + key), session: null });

describe('what an engine says of its cache', () => {
  test('trims what is believed to what the engine can hold, oldest first', () => {
    const memory = new RoutingMemory({ prefillMsPerToken: 1, cacheTokens: 1e6 }, tokensIn);
    const census = new CacheCensus();
    memory.learn('a', prompt(1), 0);
    memory.learn('a', prompt(2), 0);
    census.count([{ kind: 'cache-size', blocks: 80, blockTokens: 16 }, { kind: 'block-stored', blocks: 20 }], 'a', memory);
    expect(memory.hitTokens('a', prompt(1))).toBe(500);
    census.count([{ kind: 'block-removed', blocks: 50 }], 'a', memory);
    expect([memory.hitTokens('a', prompt(1)), memory.hitTokens('a', prompt(2))]).toEqual([300, 500]);
    census.count([{ kind: 'all-blocks-cleared' }, { kind: 'block-stored', blocks: 10 }], 'a', memory);
    expect([memory.hitTokens('a', prompt(1)), memory.hitTokens('a', prompt(2))]).toEqual([0, 0]);
  });

  test('never counts more than the cache can hold', () => {
    const memory = new RoutingMemory({ prefillMsPerToken: 1, cacheTokens: 1e6 }, tokensIn);
    const census = new CacheCensus();
    memory.learn('a', prompt(1), 0);
    census.count([{ kind: 'cache-size', blocks: 30, blockTokens: 10, blocksMax: 30 }, { kind: 'block-stored', blocks: 1_000 }], 'a', memory);
    expect(memory.hitTokens('a', prompt(1))).toBe(300);
    census.count([{ kind: 'block-removed', blocks: 10 }], 'a', memory);
    expect(memory.hitTokens('a', prompt(1))).toBe(200);
  });

  test('without a size nothing is concluded, and nothing of other replicas', () => {
    const memory = new RoutingMemory({ prefillMsPerToken: 1, cacheTokens: 1e6 }, tokensIn);
    const census = new CacheCensus();
    for (const replicaId of ['a', 'b']) memory.learn(replicaId, prompt(1), 0);
    census.count([{ kind: 'block-removed', blocks: 1_000 }], 'a', memory);
    expect(memory.hitTokens('a', prompt(1))).toBe(500);
    census.count([{ kind: 'all-blocks-cleared' }], 'a', memory);
    expect([memory.hitTokens('a', prompt(1)), memory.hitTokens('b', prompt(1))]).toEqual([0, 500]);
  });
});
