import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { asyncResponseBody } from '@penstock/contract-http';
import { eventually, MemorySharedRecords } from '@penstock/testing-kit';
import { answerAll, engineFrames, startStream, type EngineBehaviour } from './fake-engine-suite.js';
import { readEvents, startWorld, type World } from './gateway-world-suite.js';
import { answerHead, answerIdOf, answerKey, fingerprintOf } from './stored/answer-head.js';

let world: World;
let records: MemorySharedRecords;
let others: World[] = [];

beforeEach(async () => {
  records = new MemorySharedRecords();
  world = await startWorld({ slots: 64, answers: records });
  world.serveRouter();
});

afterEach(async () => {
  await Promise.all(others.map((other) => other.close()));
  others = [];
  await world.close();
});

async function join(): Promise<World> {
  const other = await startWorld({ engines: 0, log: world.log, commands: world.commands, answers: records });
  others.push(other);
  return other;
}

const keyed = (key: string, extra: Record<string, string> = {}) => ({ headers: { 'idempotency-key': key, ...extra } });
const requests = () => world.engines[0]?.requests.length ?? 0;
const text = async (response: Promise<Response> | Response) => (await response).text();
const at = (gateway: World, body: object, headers: Record<string, string>) =>
  gateway.fetch('/v1/chat/completions', { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model', messages: [{ role: 'user', content: 'hi' }], ...body }), headers });

/** Sends a token, and the rest once told to. */
function gated(): { readonly behaviour: EngineBehaviour; readonly begun: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  let begin: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const begun = new Promise<void>((resolve) => (begin = resolve));
  return {
    begun, open: () => open(),
    behaviour: async ({ response }) => {
      startStream(response);
      response.write(engineFrames.role() + engineFrames.token(0));
      begin();
      await gate;
      response.end(engineFrames.token(1) + engineFrames.finish(2) + engineFrames.usage(2) + engineFrames.done);
    },
  };
}

function setBehaviours(...behaviours: EngineBehaviour[]): void {
  const engine = world.engines[0];
  if (engine === undefined) throw new Error('the world has an engine');
  engine.behaviours = behaviours;
}

describe('an Idempotency-Key', () => {
  test('gives the stored answer again, to the byte, without running or billing it again', async () => {
    const first = await world.chat({}, keyed('order-1'));
    const body = await first.text();
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null]);
    const second = await world.chat({}, keyed('"order-1"'));
    expect([second.status, second.headers.get('idempotent-replayed'), await second.text()]).toEqual([200, 'true', body]);
    expect(second.headers.get('x-original-request-id')).toBe(first.headers.get('x-request-id'));
    const streamed = await text(world.chat({ stream: true }, keyed('order-2')));
    expect(await text(world.chat({ stream: true }, keyed('order-2')))).toBe(streamed);
    expect(streamed).toContain('data: [DONE]');
    expect(requests()).toBe(2);
    expect(await world.usage(2)).toHaveLength(2);
  });

  test('with another body is a mistake; of another organisation it is another key', async () => {
    await text(world.chat({}, keyed('k')));
    const refused = await world.chat({ temperature: 0.5 }, keyed('k'));
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ error: { code: 'idempotency_key_reused' } });
    expect(refused.headers.get('x-should-retry')).toBe('false');
    const { id } = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Two' }) })).json() as { id: string };
    const { key } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'two', project_id: `proj_${id.slice(4)}` }) })).json() as { key: string };
    const other = await world.fetch('/v1/chat/completions', { method: 'POST', key, body: JSON.stringify({ model: 'public-model', messages: [{ role: 'user', content: 'hi' }] }), headers: { 'idempotency-key': 'k' } });
    expect([other.status, other.headers.get('idempotent-replayed')]).toEqual([200, null]);
    expect((await world.chat({}, keyed('x'.repeat(256)))).status).toBe(400);
  });

  test('of many requests at once, at several gateways, runs one', async () => {
    const gateways = [world, await join(), await join()];
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => text(at(gateways[index % 3] ?? world, { stream: true }, { 'idempotency-key': 'same' }))));
    expect(new Set(answers).size).toBe(1);
    expect(requests()).toBe(1);
    expect(await world.usage(1)).toHaveLength(1);
  });

  test('attaches to a stream that runs, here and at another gateway, also when the first client has left', async () => {
    const other = await join();
    const engine = gated();
    setBehaviours(engine.behaviour, answerAll);
    const leaving = new AbortController();
    const first = await world.chat({ stream: true }, { ...keyed('long'), signal: leaving.signal });
    await engine.begun;
    await first.body?.getReader().read();
    leaving.abort();
    const attached = [at(world, { stream: true }, { 'idempotency-key': 'long' }), at(other, { stream: true }, { 'idempotency-key': 'long' })];
    const streams = await Promise.all(attached);
    expect(streams.map((stream) => stream.headers.get('idempotent-replayed'))).toEqual(['true', 'true']);
    engine.open();
    const events = await Promise.all(streams.map(readEvents));
    expect(events[0]).toEqual(events[1]);
    expect(events[0]?.at(-1)).toBe('[DONE]');
    expect(events[0]?.join('')).toContain('t1 ');
    expect(requests()).toBe(1);
    expect((await world.usage(1))[0]).toMatchObject({ status: 'completed', completionTokens: 2 });
  });

  test('can be used again after a refusal that billed nothing, and not after a mistake', async () => {
    setBehaviours(({ response }) => void response.writeHead(500, { 'content-type': 'application/json' }).end('{}'), answerAll);
    expect((await world.chat({}, keyed('retry'))).status).toBeGreaterThanOrEqual(500);
    await eventually(() => records.get(`${answerKey('org_root', answerIdOf('org_root', 'retry'))}.head`), (record) => record === undefined);
    expect((await world.chat({}, keyed('retry'))).status).toBe(200);
    const before = requests();
    expect((await world.chat({ temperature: 9 }, keyed('bad'))).status).toBe(400);
    expect((await world.chat({ temperature: 9 }, keyed('bad'))).headers.get('idempotent-replayed')).toBe('true');
    expect(requests()).toBe(before);
  });

  test('of a gateway that died in the middle is run again under the same request id, so that it is billed once', async () => {
    const body = JSON.stringify({ model: 'public-model', messages: [{ role: 'user', content: 'hi' }] });
    const head = answerHead.parse({
      id: answerIdOf('org_root', 'orphan'), fingerprint: fingerprintOf('POST', '/chat/completions', Buffer.from(body)), requestId: `req_${'a'.repeat(32)}`, endpointId: 'ep_1', isAsync: false, state: 'running', attempt: 1,
      startedAtMs: Date.now() - 60_000, touchedAtMs: Date.now() - 30_000, status: 200, headers: {}, isTruncated: false, pieces: 0,
    });
    await records.put(`${answerKey('org_root', head.id)}.head`, new TextEncoder().encode(JSON.stringify(head)));
    const answer = await world.fetch('/v1/chat/completions', { method: 'POST', key: world.key, body, headers: { 'idempotency-key': 'orphan' } });
    expect(answer.status).toBe(200);
    expect((await world.usage(1))[0]).toMatchObject({ requestId: head.requestId, status: 'completed' });
  });

  test('is refused while it cannot be kept, and requests without one go on', async () => {
    records.isDown = true;
    const refused = await world.chat({}, keyed('k'));
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('without Idempotency-Key') } });
    expect((await world.chat({})).status).toBe(200);
  });
});

describe('Prefer: respond-async', () => {
  const poll = async (url: string, key = world.key) => {
    const response = await world.fetch(url, { key });
    return { status: response.status, body: await response.json() as unknown };
  };

  test('answers at once with where to look, and keeps the answer for whoever asks next', async () => {
    const engine = gated();
    setBehaviours(engine.behaviour, answerAll);
    const accepted = await world.chat({ stream: true }, { headers: { prefer: 'respond-async' } });
    expect([accepted.status, accepted.headers.get('preference-applied')]).toEqual([202, 'respond-async']);
    const job = asyncResponseBody.parse(await accepted.json());
    expect(job).toMatchObject({ status: 'running', response: null, url: accepted.headers.get('location') });
    await engine.begun;
    const stream = world.fetch(job.url, { key: world.key, headers: { accept: 'text/event-stream' } });
    engine.open();
    expect((await readEvents(await stream)).at(-1)).toBe('[DONE]');
    const done = await eventually(() => poll(job.url), ({ body }) => asyncResponseBody.parse(body).status !== 'running');
    expect(done.body).toMatchObject({ status: 'completed', response: { status_code: 200, content_type: 'text/event-stream; charset=utf-8', body: expect.stringContaining('t1 ') } });
  });

  test('a whole answer comes back as it would have been, polled at another gateway or as a stream of one event', async () => {
    const other = await join();
    const job = asyncResponseBody.parse(await (await world.chat({}, { headers: { prefer: 'wait=5, respond-async' } })).json());
    const done = await eventually(async () => asyncResponseBody.parse(await (await other.fetch(job.url, { key: world.key })).json()), ({ status }) => status !== 'running');
    expect(done).toMatchObject({ status: 'completed', request_id: job.request_id, response: { status_code: 200, body: { object: 'chat.completion' } } });
    const events = await readEvents(await other.fetch(job.url, { key: world.key, headers: { accept: 'text/event-stream' } }));
    expect([JSON.parse(events[0] ?? '{}'), events[1]]).toEqual([done.response?.body, '[DONE]']);
  });

  test('is nobody else\'s to see, and a mistake shows in the answer', async () => {
    const job = asyncResponseBody.parse(await (await world.chat({ model: 'no-such-model' }, { headers: { prefer: 'respond-async' } })).json());
    const done = await eventually(() => poll(job.url), ({ body }) => asyncResponseBody.parse(body).status !== 'running');
    expect(done.body).toMatchObject({ status: 'failed', response: { status_code: 404, body: { error: { code: 'model_not_found' } } } });
    const { id } = await (await world.fetch('/admin/v1/organisations', { method: 'POST', body: JSON.stringify({ name: 'Two' }) })).json() as { id: string };
    const { key } = await (await world.fetch('/admin/v1/keys', { method: 'POST', body: JSON.stringify({ name: 'two', project_id: `proj_${id.slice(4)}` }) })).json() as { key: string };
    const foreign = await poll(job.url, key);
    const unknown = await poll('/v1/async/async_0123', key);
    expect([foreign.status, foreign.body]).toEqual([404, unknown.body]);
  });
});
