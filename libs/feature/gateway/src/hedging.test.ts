import { afterEach, describe, expect, test } from '@jest/globals';
import { admitRequest, getRequestUsage } from '@penstock/contract-commands';
import { requestExplanation } from '@penstock/contract-http';
import { eventually } from '@penstock/testing-kit';
import { HEDGE_PROMPT_TOKENS_MAX } from './frame/hedge-policy.js';
import { answerAll, engineFrames, startStream, type EngineBehaviour, type EngineExchange } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';

let world: World;
afterEach(() => world.close());

/** So many answers make the percentile known and the budget of second attempts positive; none of them is hedged itself, since its prompt is long. */
const WARM_UP = 40;
const LONG_PROMPT = [{ role: 'user', content: 'long '.repeat(HEDGE_PROMPT_TOKENS_MAX) }];

const streamedWarmUp = () => world.chat({ stream: true, max_tokens: 1, messages: LONG_PROMPT });
const wholeWarmUp = () => world.chat({ max_tokens: 1, messages: LONG_PROMPT });

async function start(isOn: boolean, warmUp: () => Promise<Response> = streamedWarmUp): Promise<void> {
  world = await startWorld({ engines: 2, slots: 64, engineOptions: isOn ? { hedge: true } : {} });
  world.serveRouter();
  for (let request = 0; request < WARM_UP; request += 1) await (await warmUp()).text();
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
const fail: EngineBehaviour = ({ response }) => void response.writeHead(500).end('out of memory');

/** Behaves so once the returned function was called. */
function held(behaviour: EngineBehaviour): { readonly behaviour: EngineBehaviour; readonly release: () => void } {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  return {
    release,
    behaviour: async (exchange) => {
      await released;
      await behaviour(exchange);
    },
  };
}

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

describe('whole answers of an endpoint with hedging', () => {
  const content = async (response: Response) => (await response.json() as { choices: { message: { content: string } }[] }).choices[0]?.message.content;
  const recordsOf = async (response: Response, count = WARM_UP + 1) => (await world.usage(count)).filter((record) => record.requestId === response.headers.get('x-request-id'));

  test('come from a second replica when the first one is later than they are used to be; the loser is aborted, the answer billed once, and the request explains itself', async () => {
    await start(true, wholeWarmUp);
    behave(0, never);
    const response = await world.chat({ max_tokens: 3 });
    expect(await content(response)).toBe('t0 t1 t2 ');
    await requestsOf(0)[0]?.aborted;
    const [record, ...others] = await recordsOf(response);
    expect([record, others]).toMatchObject([{ status: 'completed', replicaId: 'rep_1', completionTokens: 3, promptTokens: 5 }, []]);
    expect(await hedges()).toEqual([expect.stringContaining('winner="second"')]);
    world.commands.serve(getRequestUsage, () => ({ kind: 'ok', value: { record: record ?? null } }));
    const { why } = requestExplanation.parse(await (await world.fetch(`/v1/requests/${record?.requestId ?? ''}`, { key: world.key })).json());
    expect(why).toContainEqual(expect.stringMatching(/^Replica rep_0 was late, so after \d+ ms replica rep_1 was asked as well; the answer is that of rep_1, and the other one held a slot for \d+ ms without being billed for tokens\.$/));
  });

  test('come from the first replica when it answers first after all', async () => {
    await start(true, wholeWarmUp);
    const first = held(answerAll);
    behave(0, first.behaviour);
    behave(1, never);
    const answer = world.chat({ max_tokens: 2 });
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    first.release();
    const response = await answer;
    expect(await content(response)).toBe('t0 t1 ');
    await requestsOf(1)[0]?.aborted;
    expect(await recordsOf(response)).toMatchObject([{ status: 'completed', replicaId: 'rep_0', completionTokens: 2 }]);
    expect(await hedges()).toEqual([expect.stringContaining('winner="first"')]);
  });

  test('are an error when both replicas fail, after two attempts and no more, and nothing is billed', async () => {
    await start(true, wholeWarmUp);
    const [first, second] = [held(fail), held(fail)];
    behave(0, first.behaviour);
    behave(1, second.behaviour);
    const answer = world.chat({ max_tokens: 2 });
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    first.release();
    second.release();
    const response = await answer;
    expect(response.status).toBeGreaterThanOrEqual(500);
    expect(await recordsOf(response)).toMatchObject([{ status: 'failed', completionTokens: 0, promptTokens: 0 }]);
    expect(requestsOf(0).length + requestsOf(1).length).toBe(2);
    expect(await hedges()).toEqual([expect.stringContaining('winner="none"')]);
  });

  test('are not waited for when one replica says that the request is at fault', async () => {
    await start(true, wholeWarmUp);
    const first = held(({ response }) => void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no","type":"BadRequestError","code":400}}'));
    behave(0, first.behaviour);
    behave(1, never);
    const answer = world.chat({ max_tokens: 2 });
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    first.release();
    expect((await answer).status).toBe(400);
    await requestsOf(1)[0]?.aborted;
  });

  test('are waited for once the share of second attempts is used up', async () => {
    await start(true, wholeWarmUp);
    behave(0, never);
    // Of so many requests two may be hedged.
    for (let request = 0; request < 2; request += 1) expect(await content(await world.chat({ max_tokens: 1 }))).toBe('t0 ');
    const late = held(answerAll);
    behave(0, late.behaviour);
    const answer = world.chat({ max_tokens: 1 });
    await eventually(() => requestsOf(0), (requests) => requests.length === 3);
    // Longer than a second attempt would have waited.
    for (let round = 0; round < 60; round += 1) await world.fetch('/v1/models');
    expect(requestsOf(1)).toHaveLength(2);
    late.release();
    expect(await content(await answer)).toBe('t0 ');
  });

  test('end at both replicas when the client leaves', async () => {
    await start(true, wholeWarmUp);
    behave(0, never);
    behave(1, never);
    const leaving = new AbortController();
    const left = world.chat({ max_tokens: 2 }, { signal: leaving.signal }).catch(() => undefined);
    await eventually(() => requestsOf(1), (requests) => requests.length === 1);
    leaving.abort();
    await left;
    await Promise.all([requestsOf(0)[0]?.aborted, requestsOf(1)[0]?.aborted]);
    expect((await world.usage(WARM_UP + 1)).slice(WARM_UP)).toMatchObject([{ status: 'aborted', completionTokens: 0 }]);
  });

  test('are hedged for embeddings as well, by their own times', async () => {
    const embedding: EngineBehaviour = ({ response }) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","model":"inner-model","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":5,"total_tokens":5}}');
    const embed = (input: string) => world.fetch('/v1/embeddings', { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model', input }) });
    await start(true, async () => {
      behave(0, embedding);
      behave(1, embedding);
      return embed('long '.repeat(HEDGE_PROMPT_TOKENS_MAX));
    });
    behave(0, never);
    const response = await embed('short');
    expect(await response.json()).toMatchObject({ data: [{ embedding: [0.5] }] });
    await requestsOf(0)[0]?.aborted;
    expect(await recordsOf(response)).toMatchObject([{ operation: 'embeddings', status: 'completed', replicaId: 'rep_1', promptTokens: 5 }]);
  });
});

test('an endpoint without it asks one replica, however late', async () => {
  await start(false);
  const late = held(answerAll);
  behave(0, late.behaviour);
  behave(1, late.behaviour);
  const response = world.chat({ stream: true, max_tokens: 1 });
  await eventually(() => requestsOf(0).length + requestsOf(1).length, (count) => count === 1);
  // Longer than a second attempt would have waited.
  for (let round = 0; round < 40; round += 1) await world.fetch('/v1/models');
  expect(requestsOf(0).length + requestsOf(1).length).toBe(1);
  late.release();
  await (await response).text();
  expect(await hedges()).toEqual([]);
});
