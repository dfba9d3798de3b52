import { afterEach, describe, expect, test } from '@jest/globals';
import { admitRequest, releaseLeases } from '@penstock/contract-commands';
import { ServiceUnavailableError } from '@penstock/kernel';
import { eventually } from '@penstock/testing-kit';
import { answerAll, engineFrames, startStream, type EngineBehaviour, type EngineExchange } from './fake-engine-suite.js';
import { readEvents, startWorld, type World, type WorldOptions } from './gateway-world-suite.js';

let world: World;
afterEach(() => world.close());

async function start(options: WorldOptions, ...behaviours: EngineBehaviour[]): Promise<World> {
  world = await startWorld(options);
  world.serveRouter();
  for (const engine of world.engines) if (behaviours.length > 0) engine.behaviours = behaviours;
  return world;
}

/** Goes on and on, slowly enough for every limit but that of the whole answer. */
const trickle: EngineBehaviour = ({ response }) => {
  startStream(response);
  response.write(engineFrames.role());
  let index = 0;
  const timer = setInterval(() => response.write(engineFrames.token(index++)), 20);
  response.once('close', () => clearInterval(timer));
};
const outcomesTold = () => world.commands.sent.filter(({ subject }) => subject === releaseLeases.subject).flatMap(({ request }) => (request as { releases: { outcome: string; timedOut?: boolean }[] }).releases.map(({ outcome, timedOut }) => [outcome, timedOut]));

const errorCode = (events: readonly string[]) => (JSON.parse(events.at(-2) ?? '{}') as { error?: { code?: string } }).error?.code;
const beginStream: EngineBehaviour = ({ response }) => {
  startStream(response);
  response.write(engineFrames.role() + engineFrames.token(0));
};

describe('time limits', () => {
  test('an engine that does not begin is given up, here and elsewhere', async () => {
    await start({ engines: 2, settings: { FIRST_TOKEN_TIMEOUT_MS: '400' } }, () => undefined);
    const response = await world.chat({ stream: true });
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([504, 'engine_timeout']);
    await Promise.all(world.engines.flatMap((engine) => engine.requests).map(({ aborted }) => aborted));
    expect(world.engines.map((engine) => engine.requests.length)).toEqual([1, 1]);
  });

  test('an engine that stops in the middle ends the stream with an error, and is aborted', async () => {
    await start({ settings: { CHUNK_GAP_TIMEOUT_MS: '100' } }, beginStream);
    const events = await readEvents(await world.chat({ stream: true }));
    expect([errorCode(events), events.at(-1)]).toEqual(['engine_timeout', '[DONE]']);
    await world.engines[0]?.requests[0]?.aborted;
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', completionTokens: 1, errorCode: 'engine_timeout' }]);
    await eventually(outcomesTold, (told) => told.length === 1);
    expect(outcomesTold()).toEqual([['engine-failed', true]]);
  });

  test('an endpoint has its own limits', async () => {
    await start({ engines: 2, engineOptions: { first_token_timeout_ms: 100 } }, () => undefined);
    expect((await world.chat({ stream: true })).status).toBe(504);
  });

  test.each(['/v1/chat/completions', '/v1/responses'])('an answer of %s that never comes to an end is ended, and its replica is not to blame', async (path) => {
    await start({ engines: 2, settings: { TOTAL_TIMEOUT_MS: '300' } }, trickle);
    const response = await world.fetch(path, { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model', stream: true, ...(path.endsWith('responses') ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }) }) });
    const text = await response.text();
    expect(text).toContain('have the endpoint\'s total_timeout_ms raised');
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', errorCode: 'total_timeout' }]);
    await Promise.all(world.engines.flatMap((engine) => engine.requests).map(({ aborted }) => aborted));
    expect(world.engines.flatMap((engine) => engine.requests)).toHaveLength(1);
    await eventually(outcomesTold, (told) => told.length === 1);
    expect(outcomesTold()).toEqual([['aborted', undefined]]);
  });

  test('a stream that waits long gets headers and heartbeats of one line, then its answer', async () => {
    // The headers may come before the request has reached the engine.
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const held: EngineBehaviour = async (exchange) => {
      await released;
      await answerAll(exchange);
    };
    await start({ settings: { EARLY_HEADERS_AFTER_MS: '1', HEARTBEAT_INTERVAL_MS: '1' } }, held);
    const response = await world.chat({ stream: true, max_tokens: 2 });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    release();
    const text = await response.text();
    expect(text).toMatch(/^(: loading\n)+data: \{/);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each(['/v1/chat/completions', '/v1/responses'])('a stream of %s that stands still in its middle gets comments, and goes on', async (path) => {
    const held: EngineExchange[] = [];
    await start({ settings: { HEARTBEAT_INTERVAL_MS: '1' } }, (exchange) => {
      held.push(exchange);
      void beginStream(exchange);
    });
    const asked = path.endsWith('responses') ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] };
    const response = await world.fetch(path, { method: 'POST', key: world.key, body: JSON.stringify({ model: 'public-model', stream: true, ...asked }) });
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    let text = '';
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      text += decoder.decode(part.value, { stream: true });
      const engine = held[0];
      if (!text.includes(': waiting\n') || engine?.response.writableEnded !== false) continue;
      engine.response.end(engineFrames.token(1) + engineFrames.finish(2) + engineFrames.usage(2) + engineFrames.done);
    }
    // Events stay whole around the comments.
    for (const line of text.split('\n')) expect(line).toMatch(/^(: waiting|data: (\{.*\}|\[DONE\])|event: [a-z_.]+|)$/);
    expect(text.replaceAll(': waiting\n', '')).toMatch(/"t0 [^]*"t1 /);
    expect(await world.usage(1)).toMatchObject([{ status: 'completed', completionTokens: 2 }]);
  });

  test('what fails after early headers is an event', async () => {
    await start({ settings: { EARLY_HEADERS_AFTER_MS: '1', FIRST_TOKEN_TIMEOUT_MS: '600' } }, () => undefined);
    const response = await world.chat({ stream: true });
    expect(response.status).toBe(200);
    expect(errorCode(await readEvents(response))).toBe('engine_timeout');
  });
});

describe('a slow reader', () => {
  test('stops the engine\'s stream instead of filling our memory, and gets every byte in the end', async () => {
    const filler = 'x'.repeat(64 * 1_024);
    const frames = 600;
    let written = 0;
    const flood: EngineBehaviour = async ({ response }) => {
      startStream(response);
      response.write(engineFrames.role());
      for (; written < frames; written += 1) {
        const frame = `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: filler }, finish_reason: null }], usage: { prompt_tokens: 5, completion_tokens: written + 1, total_tokens: written + 6 } })}\n\n`;
        if (!response.write(frame)) await new Promise((resolve) => response.once('drain', resolve));
      }
      response.end(engineFrames.finish(frames) + engineFrames.usage(frames) + engineFrames.done);
    };
    await start({}, flood);
    const reader = (await world.chat({ stream: true })).body?.getReader();
    // Nothing is read: the engine comes to a stop with a part of its answer in the buffers between.
    let before = -1;
    await eventually(() => written, (now) => {
      const stands = now > 0 && now === before;
      before = now;
      return stands;
    });
    expect(written).toBeLessThan(frames);
    let bytes = 0;
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) bytes += part.value.length;
    expect(bytes).toBeGreaterThan(frames * filler.length);
    expect(await world.usage(1)).toMatchObject([{ status: 'completed', completionTokens: frames }]);
  });

  test('that takes nothing at all is cut off', async () => {
    const flood: EngineBehaviour = async ({ response }) => {
      startStream(response);
      const closed = new Promise((resolve) => response.once('close', resolve));
      // Few pieces, since more of them than the context has tokens would end the answer for that reason.
      const frame = `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'x'.repeat(64 * 1_024) }, finish_reason: null }] })}\n\n`;
      while (!response.destroyed) if (!response.write(frame)) await Promise.race([new Promise((resolve) => response.once('drain', resolve)), closed]);
    };
    await start({ settings: { CLIENT_STALL_TIMEOUT_MS: '200' } }, flood);
    await world.chat({ stream: true });
    await (await eventually(() => world.engines[0]?.requests[0], (exchange) => exchange !== undefined))?.aborted;
    expect(await world.usage(1)).toMatchObject([{ status: 'aborted' }]);
  });
});

describe('a router', () => {
  test('that hangs is replaced by the gateway\'s own choice, and only the first request waits for it', async () => {
    await start({ engines: 1, settings: { ROUTER_SILENCE_MS_MAX: '60000' } });
    world.commands.serve(admitRequest, (_request, { signal }) => new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new ServiceUnavailableError(admitRequest.subject, 'aborted')));
    }));
    const first = world.chat({});
    await eventually(() => world.commands.sent.filter(({ subject }) => subject === admitRequest.subject), (sent) => sent.length === 1);
    expect((await world.chat({})).status).toBe(200);
    expect(world.engines[0]?.requests).toHaveLength(1);
    expect((await first).status).toBe(200);
    expect(world.commands.sent.filter(({ subject }) => subject === admitRequest.subject)).toHaveLength(1);
  });

  test('that is heard may keep a request waiting', async () => {
    await start({ settings: { ROUTER_SILENCE_MS_MAX: '60000' } });
    world.signals.publish('tele.router.inst_1', { instanceId: 'inst_1' });
    let answer: ((reply: { kind: 'refused'; refusal: { code: string; message: string; retryAfterMs: number } }) => void) | undefined;
    world.commands.serve(admitRequest, () => new Promise((resolve) => { answer = resolve; }));
    const response = world.chat({});
    await eventually(() => answer, (given) => given !== undefined);
    answer?.({ kind: 'refused', refusal: { code: 'queue_timeout', message: 'The queue was too long.', retryAfterMs: 1_500 } });
    expect([(await response).status, (await response).headers.get('retry-after-ms'), (await response).headers.get('retry-after')]).toEqual([429, '1500', '2']);
    expect(world.engines[0]?.requests).toHaveLength(0);
  });
});

describe('a gateway that stops', () => {
  test('lets streams finish, and takes no new requests', async () => {
    const held: EngineExchange[] = [];
    await start({}, (exchange) => {
      held.push(exchange);
      void beginStream(exchange);
    });
    const response = await world.chat({ stream: true });
    const closing = world.service.close();
    expect((await world.chat({})).status).toBe(503);
    held[0]?.response.end(engineFrames.finish(1) + engineFrames.usage(1) + engineFrames.done);
    expect((await readEvents(response)).at(-1)).toBe('[DONE]');
    await closing;
    expect(await world.usage(1)).toMatchObject([{ status: 'completed', completionTokens: 1 }]);
  });

  test('ends those that do not finish with an error event', async () => {
    await start({ settings: { DRAIN_TIMEOUT_MS: '1000' } }, beginStream);
    const response = await world.chat({ stream: true });
    const closing = world.service.close();
    expect(errorCode(await readEvents(response))).toBe('shutting_down');
    await closing;
    expect(await world.usage(1)).toMatchObject([{ status: 'failed', completionTokens: 1, errorCode: 'shutting_down' }]);
  });
});

describe('a gateway at its limit', () => {
  test('refuses what it could not record', async () => {
    await start({ spoolBytesMax: 0 });
    const response = await world.chat({});
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([503, 'service_unavailable']);
    expect(world.engines[0]?.requests).toHaveLength(0);
  });

  test('refuses more requests than it may have in flight', async () => {
    await start({ settings: { REQUESTS_IN_FLIGHT_MAX: '1' } }, beginStream);
    const abort = new AbortController();
    const response = await world.chat({ stream: true }, { signal: abort.signal });
    expect((await world.chat({})).status).toBe(429);
    abort.abort();
    await response.text().catch(() => undefined);
  });
});
