import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { promptNews } from '@penstock/contract-commands';
import { startWorld, type World } from './gateway-world-suite.js';

let world: World;
beforeAll(async () => {
  // No router answers, so the gateway chooses by itself.
  world = await startWorld({ engines: 3, settings: { ROUTER_SILENCE_MS_MAX: '1' } });
});
afterAll(() => world.close());

const longText = (topic: string): string => `You know everything about ${topic}. `.repeat(400);

/** Where the last request went. */
async function replicaOf(body: object, headers: Record<string, string> = {}): Promise<string | null> {
  const before = world.log.all('EV_USAGE').length;
  const answer = await world.chat(body, { headers });
  expect(answer.status).toBe(200);
  await answer.text();
  return (await world.usage(before + 1)).at(-1)?.replicaId ?? null;
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
});
