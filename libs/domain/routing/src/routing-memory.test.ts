import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BLOCKS_PER_REPLICA_MAX, CachedPrefixes } from './cached-prefixes.js';
import { pickReplica, type ReplicaCandidate } from './pick-replica.js';
import type { PromptTrail } from './prompt-trail.js';
import { RoutingMemories } from './routing-memories.js';
import { replicaPaceOf, RoutingMemory, SESSIONS_MAX } from './routing-memory.js';

const BLOCK = 100;
const pace = { prefillMsPerToken: 0.1, cacheTokens: 2_000 };
const tokensIn = (count: number): number => count * BLOCK;
const memoryOf = (): RoutingMemory => new RoutingMemory(pace, tokensIn);
const prompt = (blocks: readonly number[], session: number | null = null): PromptTrail => ({ tokens: blocks.length * BLOCK + 20, blocks, session });
const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from + index);
const candidate = (replicaId: string, inFlight = 0): ReplicaCandidate => ({ replicaId, inFlight, slots: 100, isHealthy: true });
const pick = (memory: RoutingMemory, asked: PromptTrail, nowMs: number, candidates: readonly ReplicaCandidate[] = [candidate('a'), candidate('b'), candidate('c')]): string | undefined =>
  pickReplica(candidates, { excludedReplicaIds: [], rotation: 0, nowMs, prompt: asked, memory })?.replicaId;

describe('what is believed to be in a replica\'s cache', () => {
  test('the longest beginning counts, and the prompt used longest ago is forgotten from its end', () => {
    const cached = new CachedPrefixes(1_000, tokensIn);
    cached.touch(range(0, 6));
    cached.touch([0, 1, 100, 101]);
    expect(cached.hitTokens([0, 1, 2, 3, 999])).toBe(400);
    cached.touch(range(200, 4));
    // Of 12 blocks 10 have room: the last two of the first prompt went.
    expect(cached.hitTokens(range(0, 6))).toBe(400);
    expect(cached.tokens).toBe(1_000);
    cached.trim(500);
    expect(cached.tokens).toBe(500);
    expect(cached.hitTokens(range(200, 4))).toBe(400);
  });

  test('property: within its bounds, and halving finds what a walk finds', () => {
    const trail = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 12 }).map((path) => path.map((_, index) => path.slice(0, index + 1).reduce((key, step) => key * 5 + step + 1, 0)));
    fc.assert(fc.property(fc.array(trail, { maxLength: 40 }), trail, fc.integer({ min: 1, max: 30 }), (touched, asked, room) => {
      const cached = new CachedPrefixes(room * BLOCK, tokensIn);
      for (const keys of touched) {
        cached.touch(keys);
        expect(cached.tokens).toBeLessThanOrEqual(room * BLOCK);
        expect(cached.size).toBeLessThanOrEqual(Math.min(room, BLOCKS_PER_REPLICA_MAX));
      }
      const walked = asked.findIndex((key) => cached.hitTokens([key]) === 0);
      expect(cached.hitTokens(asked)).toBe(tokensIn(walked === -1 ? asked.length : walked));
    }));
  });

  test('a replica never has more blocks than the limit, however large its cache', () => {
    const cached = new CachedPrefixes(Number.MAX_SAFE_INTEGER, tokensIn);
    for (let start = 0; start < 2 * BLOCKS_PER_REPLICA_MAX; start += 200) cached.touch(range(start, 200));
    expect(cached.size).toBe(BLOCKS_PER_REPLICA_MAX);
  });
});

describe('what an engine says of its cache with an answer', () => {
  const old = prompt(range(100, 4));
  const asked = prompt(range(0, 5));
  const young = prompt(range(200, 3));
  const later = 10_000;
  /** The replica was sent three prompts, and long after that the second one again. */
  const asks = (memory: RoutingMemory, again = prompt(asked.blocks)): PromptTrail => {
    for (const sent of [old, asked, young]) memory.learn('a', sent, 0);
    memory.learn('a', again, later);
    return again;
  };
  const hits = (memory: RoutingMemory) => [old, asked, young].map((trail) => memory.hitTokens('a', trail));

  test('nothing where something was believed: what is as old is gone too, and the prompt itself is there again', () => {
    const memory = memoryOf();
    memory.correct('a', asks(memory), { promptTokens: 700, cachedTokens: 0 });
    expect(hits(memory)).toEqual([0, 500, 300]);
  });

  test('nothing again at once: the replica does not keep what it computes, until it shows that it does', () => {
    const memory = memoryOf();
    memory.correct('a', asks(memory), { promptTokens: 700, cachedTokens: 0 });
    const again = prompt(asked.blocks);
    memory.learn('a', again, 2 * later);
    memory.correct('a', again, { promptTokens: 700, cachedTokens: 0 });
    expect(hits(memory)).toEqual([0, 0, 0]);
    memory.learn('a', again, 3 * later);
    memory.correct('a', again, { promptTokens: 700, cachedTokens: 600 });
    memory.learn('a', again, 4 * later);
    memory.correct('a', again, { promptTokens: 700, cachedTokens: 0 });
    expect(hits(memory)).toEqual([0, 500, 0]);
  });

  test('as much as was believed, in tokens of another length, changes nothing', () => {
    const memory = memoryOf();
    for (const cachedTokens of [250, 700]) memory.correct('a', asks(memory), { promptTokens: 700, cachedTokens });
    expect(hits(memory)).toEqual([400, 500, 300]);
  });

  test('something that was forgotten here is believed again', () => {
    const memory = memoryOf();
    const again = asks(memory);
    memory.trim('a', 0);
    memory.correct('a', again, { promptTokens: 700, cachedTokens: 512 });
    expect(hits(memory)).toEqual([0, 500, 0]);
  });

  test('nothing is said against what was still to be computed, by another replica, or of a prompt without an expectation', () => {
    const memory = memoryOf();
    const soon = prompt(asked.blocks);
    for (const sent of [old, asked, young, soon]) memory.learn('a', sent, 0);
    memory.correct('a', soon, { promptTokens: 700, cachedTokens: 0 });
    const elsewhere = asks(memory);
    memory.correct('b', elsewhere, { promptTokens: 700, cachedTokens: 0 });
    memory.correct('a', prompt(asked.blocks), { promptTokens: 700, cachedTokens: 0 });
    memory.correct('a', asks(memory), { promptTokens: 0, cachedTokens: 0 });
    expect(hits(memory)).toEqual([400, 500, 300]);
  });

  test('property: what is held is what was touched after the mark, whatever the order', () => {
    const keys = fc.uniqueArray(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 6 });
    fc.assert(fc.property(fc.array(keys, { maxLength: 20 }), keys, fc.array(keys, { maxLength: 10 }), (before, marked, after) => {
      const cached = new CachedPrefixes(1e6, tokensIn);
      for (const touched of before) cached.touch(touched);
      cached.touch(marked);
      const mark = cached.hitMark(marked);
      for (const touched of after) cached.touch(touched);
      cached.forgetUpTo(mark ?? -1);
      const held = new Set(after.flat());
      expect(range(0, 21).filter((key) => cached.hitTokens([key]) > 0)).toEqual([...held].sort((one, other) => one - other));
      expect(cached.tokens).toBe(held.size * BLOCK);
      cached.forget(range(0, 21));
      expect([cached.tokens, cached.size]).toEqual([0, 0]);
    }));
  });
});

describe('the choice by what was learned', () => {
  test('a prompt goes where its beginning is, unless that replica has too much to compute first', () => {
    const memory = memoryOf();
    memory.learn('b', prompt(range(0, 10)), 0);
    expect(pick(memory, prompt([...range(0, 10), 77]), 1_000)).toBe('b');
    // 90 ms of other work on b are less than the 100 ms that its cached tokens save, 200 ms are more.
    memory.learn('b', { tokens: 900, blocks: [], session: null }, 1_000);
    expect(pick(memory, prompt([...range(0, 10), 77]), 1_000)).toBe('b');
    memory.learn('b', { tokens: 1_100, blocks: [], session: null }, 1_000);
    expect(pick(memory, prompt([...range(0, 10), 77]), 1_000)).toBe('a');
    expect(pick(memory, prompt([...range(0, 10), 77]), 2_000)).toBe('b');
  });

  test('a session stays where it was while nothing speaks against it', () => {
    const memory = memoryOf();
    memory.learn('c', prompt([], 42), 0);
    expect(pick(memory, prompt([], 42), 1_000)).toBe('c');
    expect(pick(memory, prompt([], 43), 1_000)).toBe('a');
    expect(pick(memory, prompt([], 42), 1_000, [candidate('a'), candidate('c', 50)])).toBe('a');
  });

  test('a replica that is gone, or lost its cache, is nobody\'s favourite', () => {
    const memory = memoryOf();
    memory.learn('b', prompt(range(0, 10)), 0);
    memory.forget('b');
    expect(memory.hitTokens('b', prompt(range(0, 10)))).toBe(0);
    memory.learn('b', prompt(range(0, 10)), 0);
    memory.keepOnly((replicaId) => replicaId !== 'b');
    expect(memory.blocks).toBe(0);
  });

  test('a request that may outgrow a small context goes to a replica with a larger one', () => {
    const candidates = [{ ...candidate('a'), contextTokens: 2_000 }, candidate('b', 9)];
    expect(pickReplica(candidates, { excludedReplicaIds: [], rotation: 0, workTokens: 2_000 })?.replicaId).toBe('a');
    expect(pickReplica(candidates, { excludedReplicaIds: [], rotation: 0, workTokens: 2_001 })?.replicaId).toBe('b');
  });

  test('property: one beginning that everybody shares does not heap the requests up', () => {
    fc.assert(fc.property(fc.integer({ min: 2, max: 12 }), fc.integer({ min: 1, max: 15 }), (replicas, tail) => {
      const memory = memoryOf();
      const candidates = Array.from({ length: replicas }, (_, index) => ({ ...candidate(`rep_${index}`), sent: 0 }));
      const requests = 40 * replicas;
      for (let index = 0; index < requests; index += 1) {
        // Each computes 20 tokens beyond the shared 4 blocks and those of its own; as many come as all replicas together can take.
        const asked = prompt([...range(0, 4), ...range(1_000 + index * 20, tail)]);
        const nowMs = (index * (tail * BLOCK + 20) * pace.prefillMsPerToken) / replicas;
        const chosen = pickReplica(candidates, { excludedReplicaIds: [], rotation: index, nowMs, prompt: asked, memory });
        if (chosen === undefined) throw new Error('every replica is free');
        chosen.sent += tail * BLOCK + 20;
        memory.learn(chosen.replicaId, asked, nowMs);
      }
      const total = candidates.reduce((sum, { sent }) => sum + sent, 0);
      expect((Math.max(...candidates.map(({ sent }) => sent)) * replicas) / total).toBeLessThanOrEqual(1.3);
    }), { numRuns: 50 });
  });

  test('sessions are bounded', () => {
    const memory = memoryOf();
    for (let session = 0; session <= SESSIONS_MAX; session += 1) memory.learn('a', prompt([], session), 0);
    expect(memory.replicaOfSession(0)).toBeUndefined();
    expect(memory.replicaOfSession(SESSIONS_MAX)).toBe('a');
  });
});

describe('the memories of one process', () => {
  test('the endpoint that was called longest ago is emptied when all together are too large', () => {
    const memories = new RoutingMemories(() => ({ prefillMsPerToken: 1, cacheTokens: 1e9 }), 250);
    const [first, second] = [memories.of('ep_1'), memories.of('ep_2')];
    first.learn('a', prompt(range(0, 200)), 0);
    second.learn('a', prompt(range(0, 200)), 0);
    memories.of('ep_3');
    expect([first.blocks, second.blocks]).toEqual([0, 200]);
    expect(memories.find('ep_1')).toBeUndefined();
  });

  test('pace: what is known counts, the rest is assumed', () => {
    expect(replicaPaceOf({ cacheTokens: 5_000, prefillTokensPerSecond: 10_000 })).toEqual({ prefillMsPerToken: 0.1, cacheTokens: 5_000 });
    expect(replicaPaceOf({ cacheTokens: null, prefillTokensPerSecond: null }).cacheTokens).toBeGreaterThan(0);
  });
});
