import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { usageRecordsOf } from '@penstock/domain-usage';
import { promptNews } from '@penstock/contract-commands';
import { startWorld, type World } from './gateway-world-suite.js';

let world: World;
let fast: World;
beforeAll(async () => {
  // No router answers, so the gateway chooses by itself.
  world = await startWorld({ engines: 3, settings: { ROUTER_SILENCE_MS_MAX: '1' } });
  // A prompt that was sent counts as computed at once.
  fast = await startWorld({ engines: 3, settings: { ROUTER_SILENCE_MS_MAX: '1' }, engineOptions: { prefill_tokens_per_second: 1e8 } });
});
afterAll(async () => {
  await world.close();
  await fast.close();
});

const longText = (topic: string): string => `You know everything about ${topic}. `.repeat(400);

/** Where the last request went. */
async function replicaOf(body: object, headers: Record<string, string> = {}): Promise<string | null> {
  return replicaIn(world, () => world.chat(body, { headers }));
}

async function replicaIn(at: World, ask: () => Promise<Response>): Promise<string | null> {
  const before = at.log.all('EV_USAGE').flatMap(usageRecordsOf).length;
  const answer = await ask();
  expect(answer.status).toBe(200);
  await answer.text();
  return (await at.usage(before + 1)).at(-1)?.replicaId ?? null;
}

/** Engines that say how many of a thousand tokens they had cached. */
function sayCached(cachedTokens: number | null): void {
  const usage = { prompt_tokens: 1_000, total_tokens: 1_001, completion_tokens: 1, prompt_tokens_details: cachedTokens === null ? null : { cached_tokens: cachedTokens } };
  for (const engine of fast.engines) engine.behaviours = [({ path, response }) => {
    const choice = path.includes('chat') ? { message: { role: 'assistant', content: 'Yes.' } } : { text: 'Yes.' };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ id: 'x', object: path.includes('chat') ? 'chat.completion' : 'text_completion', created: 1, model: 'inner-model', choices: [{ index: 0, ...choice, logprobs: null, finish_reason: 'stop' }], usage }));
  }];
}

describe('the choice of a replica by the prompt', () => {
  test('conversations go on where their beginning is cached, and different ones spread', async () => {
    const first = new Map<string, string | null>();
    for (const topic of ['tides', 'bees', 'clocks']) first.set(topic, await replicaOf({ messages: [{ role: 'user', content: longText(topic) }] }));
    expect(new Set(first.values()).size).toBe(3);
    for (const topic of ['clocks', 'tides', 'bees']) {
      const messages = [{ role: 'user', content: longText(topic) }, { role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Go on.' }];
      expect(await replicaOf({ messages })).toBe(first.get(topic));
    }
  });

  test('a session stays at its replica, also where the prompts are short', async () => {
    const headers = { 'x-session-id': 'session-1' };
    const replicaId = await replicaOf({}, headers);
    for (let turn = 0; turn < 4; turn += 1) expect(await replicaOf({}, headers)).toBe(replicaId);
    expect(await replicaOf({ prompt_cache_key: 'session-1' })).toBe(replicaId);
  });

  test('what the gateway tells others of prompts is keys alone', async () => {
    const told = world.signals.published.filter(({ subject }) => subject.startsWith('tele.prompts.')).map(({ data }) => promptNews.parse(data));
    expect(told.length).toBeGreaterThan(0);
    expect(JSON.stringify(told)).not.toContain('tides');
  });

  test.each([['chat', (text: string) => fast.chat({ messages: [{ role: 'user', content: text }] })], ['completion', (text: string) => fast.fetch('/v1/completions', { method: 'POST', key: fast.key, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'public-model', prompt: text }) })]] as const)('a replica whose %s answers say that nothing was cached draws the prompt no more', async (kind, ask) => {
    const replicasOf = async (topic: string, cached: number | null): Promise<Set<string | null>> => {
      sayCached(cached);
      const replicas = new Set<string | null>();
      for (let turn = 0; turn < 6; turn += 1) replicas.add(await replicaIn(fast, () => ask(longText(`${kind} of ${topic}`))));
      return replicas;
    };
    expect((await replicasOf('tides', 900)).size).toBe(1);
    expect((await replicasOf('bees', null)).size).toBe(1);
    expect((await replicasOf('clocks', 0)).size).toBeGreaterThan(1);
  });
});
