import { describe, expect, test } from '@jest/globals';
import { promptNews } from '@penstock/contract-commands';
import { FixedClock, ManualTimers, MemorySignals } from '@penstock/testing-kit';
import { NEWS_INTERVAL_MS, PromptExchange } from './prompt-exchange.js';
import { NEWS_KEYS_MAX, NEWS_REPLICAS_MAX, PromptNews } from './prompt-news.js';
import { RoutingMemories } from './routing-memories.js';

const pace = { prefillMsPerToken: 0.1, cacheTokens: 1e6 };
const blocks = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from + index);
const prompt = (keys: readonly number[]) => ({ tokens: keys.length * 128 + 10, blocks: keys, session: null });

async function gateways(count: number) {
  const clock = new FixedClock();
  const timers = new ManualTimers(clock);
  const signals = new MemorySignals();
  const all = await Promise.all(Array.from({ length: count }, async (_, index) => {
    const memories = new RoutingMemories(() => pace);
    const exchange = new PromptExchange(`gw_${index}`, memories.news, (endpointId) => memories.of(endpointId), { signals, timers, clock });
    await exchange.start();
    return { memories, exchange };
  }));
  const at = (index: number) => {
    const gateway = all[index];
    if (gateway === undefined) throw new Error('no such gateway');
    return gateway.memories.of('ep_1');
  };
  return { clock, timers, signals, all, at };
}

describe('what gateways tell each other', () => {
  test('a prompt that one sent is known to all, with what there is to compute of it', async () => {
    const { clock, timers, at } = await gateways(3);
    at(0).learn('rep_1', prompt(blocks(0, 10)), clock.now());
    expect(at(1).hitTokens('rep_1', prompt(blocks(0, 10)))).toBe(0);
    await timers.advance(NEWS_INTERVAL_MS);
    for (const index of [1, 2]) {
      expect(at(index).hitTokens('rep_1', prompt(blocks(0, 12)))).toBe(10 * 128);
      expect(at(index).backlogMs('rep_1', clock.now())).toBeCloseTo(129, 5);
    }
    // Its own news does not come back to it.
    expect(at(0).backlogMs('rep_1', clock.now())).toBeCloseTo(129 - NEWS_INTERVAL_MS, 5);
  });

  test('what was heard is not told again, and silence is no message', async () => {
    const { clock, timers, signals, at } = await gateways(3);
    at(0).learn('rep_1', prompt(blocks(0, 3)), clock.now());
    await timers.advance(10 * NEWS_INTERVAL_MS);
    expect(signals.published.map(({ subject }) => subject)).toEqual(['tele.prompts.gw_0']);
  });

  test('garbage changes nothing', async () => {
    const { signals, at } = await gateways(1);
    for (const data of [null, 'text', { tellerId: 'x' }, { tellerId: 'x', endpoints: [{ endpointId: 'ep_1', replicas: [{ replicaId: 'rep_1', tokens: -1, prompts: [] }] }] }]) signals.publish('tele.prompts.x', data);
    expect(at(0).blocks).toBe(0);
  });

  test('one message is bounded and fits its contract, whatever happens in between', () => {
    const news = new PromptNews();
    for (let index = 0; index < 20_000; index += 1) news.note(`ep_${index % 50}`, `rep_${index % 5_000}`, 100.5, blocks(index * 256, 256));
    const message = news.take('gw_1');
    expect(promptNews.safeParse(message).success).toBe(true);
    const replicas = message?.endpoints.flatMap((endpoint) => endpoint.replicas) ?? [];
    expect(replicas.length).toBeLessThanOrEqual(NEWS_REPLICAS_MAX);
    expect(replicas.flatMap(({ prompts }) => prompts.flat()).length).toBeLessThanOrEqual(NEWS_KEYS_MAX);
    expect(news.take('gw_1')).toBeUndefined();
  });
});
