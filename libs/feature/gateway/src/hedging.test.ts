import { afterEach, describe, expect, test } from '@jest/globals';
import { admitRequest } from '@penstock/contract-commands';
import { eventually } from '@penstock/testing-kit';
import { HEDGE_PROMPT_TOKENS_MAX } from './frame/hedge-policy.js';
import { answerAll, engineFrames, startStream, type EngineBehaviour, type EngineExchange } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';

let world: World;
afterEach(() => world.close());

/** So many answers make the percentile known and the budget of second attempts positive; none of them is hedged itself, since its prompt is long. */
const WARM_UP = 40;
const LONG_PROMPT = [{ role: 'user', content: 'long '.repeat(HEDGE_PROMPT_TOKENS_MAX) }];

async function start(isOn: boolean): Promise<void> {
  world = await startWorld({ engines: 2, slots: 64, engineOptions: isOn ? { hedge: true } : {} });
  world.serveRouter();
  for (let request = 0; request < WARM_UP; request += 1) await (await world.chat({ stream: true, max_tokens: 1, messages: LONG_PROMPT })).text();
}

const requestsOf = (index: number): readonly EngineExchange[] => world.engines[index]?.requests.slice(WARM_UP / 2) ?? [];
const text = (events: readonly string[]) => events.filter((event) => event !== '[DONE]').map((event) => (JSON.parse(event) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ?? '').join('');
const behave = (index: number, behaviour: EngineBehaviour): void => {
  const engine = world.engines[index];
  if (engine !== undefined) engine.behaviours = [behaviour];
};
const metricLines = async (name: string): Promise<string[]> => (await (await fetch(`${world.url}/metrics`)).text()).split('\n').filter((line) => line.startsWith(name));
const hedges = (): Promise<string[]> => metricLines('penstock_chat_hedges_total{');
const never: EngineBehaviour = () => undefined;

describe('an endpoint with hedging', () => {
  test('asks a second replica when the first token is late; the loser is aborted, and the answer is billed once', async () => {
    await start(true);
    behave(0, never);
    const response = await world.chat({ stream: true, max_tokens: 3 });
    const events = await readEvents(response);
    expect([text(events), events.at(-1)]).toEqual(['t0 t1 t2 ', '[DONE]']);
    await requestsOf(0)[0]?.aborted;
    expect([requestsOf(0).length, requestsOf(1).length]).toEqual([1, 1]);
    const records = (await world.usage(WARM_UP + 1)).filter((record) => record.requestId === response.headers.get('x-request-id'));
    expect(records).toMatchObject([{ status: 'completed', replicaId: 'rep_1', completionTokens: 3, promptTokens: 5 }]);
    expect(await hedges()).toEqual([expect.stringContaining('winner="second"')]);
    // The slots of both are in the engine's time, and the loser's own time shows apart.
    const loserMs = 1_000 * Number((await metricLines('penstock_chat_hedge_loser_seconds_total{'))[0]?.split(' ').at(-1));
    expect(loserMs).toBeGreaterThan(0);
    expect(records[0]?.engineMs).toBeGreaterThanOrEqual(Math.floor(loserMs));
  });

  test('keeps to the first replica when its token comes first after all', async () => {
    await start(true);
    let begin: () => void = () => undefined;
    behave(0, async ({ response }) => {
      await new Promise<void>((resolve) => (begin = resolve));
      startStream(response);
      response.end(engineFrames.role() + engineFrames.token(7) + engineFrames.finish(1) + engineFrames.usage(1) + engineFrames.done);
    });
    behave(1, never);
    const answer = world.chat({ stream: true });
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    begin();
    expect(text(await readEvents(await answer))).toBe('t7 ');
    await requestsOf(1)[0]?.aborted;
    expect(await hedges()).toEqual([expect.stringContaining('winner="first"')]);
  });

  test('goes on with the second replica when the first one breaks meanwhile, and a client that leaves ends both', async () => {
    await start(true);
    let fail: () => void = () => undefined;
    let answer: () => void = () => undefined;
    behave(0, async ({ response }) => {
      await new Promise<void>((resolve) => (fail = resolve));
      response.destroy();
    });
    behave(1, async (exchange) => {
      await new Promise<void>((resolve) => (answer = resolve));
      await answerAll(exchange);
    });
    const response = world.chat({ stream: true, max_tokens: 2 });
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    fail();
    answer();
    expect(text(await readEvents(await response))).toBe('t0 t1 ');
    behave(0, never);
    behave(1, never);
    const leaving = new AbortController();
    const left = world.chat({ stream: true }, { signal: leaving.signal }).catch(() => undefined);
    await eventually(() => requestsOf(0).length + requestsOf(1).length, (count) => count >= 4);
    leaving.abort();
    await left;
    await Promise.all([requestsOf(0).at(-1)?.aborted, requestsOf(1).at(-1)?.aborted]);
  });

  test('never waits in a queue for the second attempt', async () => {
    await start(true);
    const asked: number[] = [];
    let release: () => void = () => undefined;
    behave(0, async (exchange) => {
      await new Promise<void>((resolve) => (release = resolve));
      await answerAll(exchange);
    });
    const lease = { leaseId: 'lease_x', endpointId: 'ep_1', replicaId: 'rep_0', modelVersionId: 'mv_1', url: world.engines[0]?.url ?? '', engine: 'vllm' as const, servedModel: 'inner-model', expiresAtMs: Date.now() + 15_000, queuedMs: 0, coldStart: false };
    world.commands.serve(admitRequest, ({ excludedReplicaIds, waitMsMax }) => {
      if (excludedReplicaIds.length === 0) return { kind: 'ok', value: lease };
      asked.push(waitMsMax);
      return { kind: 'refused', refusal: { code: 'queue_full', message: 'Full.' } };
    });
    const response = world.chat({ stream: true, max_tokens: 1 });
    await eventually(() => asked, (waits) => waits.length === 1);
    expect(asked).toEqual([0]);
    release();
    expect(text(await readEvents(await response))).toBe('t0 ');
  });
});

test('an endpoint without it asks one replica, however late', async () => {
  await start(false);
  let release: () => void = () => undefined;
  const held: EngineBehaviour = async (exchange) => {
    await new Promise<void>((resolve) => (release = resolve));
    await answerAll(exchange);
  };
  behave(0, held);
  behave(1, held);
  const response = world.chat({ stream: true, max_tokens: 1 });
  await eventually(() => requestsOf(0).length + requestsOf(1).length, (count) => count === 1);
  // Longer than a second attempt would have waited.
  for (let round = 0; round < 40; round += 1) await world.fetch('/v1/models');
  expect(requestsOf(0).length + requestsOf(1).length).toBe(1);
  release();
  await (await response).text();
  expect(await hedges()).toEqual([]);
});
