import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

export interface EngineExchange {
  readonly response: ServerResponse;
  readonly marker: string;
  readonly stream: boolean;
  readonly tokensMax: number;
  /** Aborted when the other side goes away. */
  readonly gone: AbortSignal;
}

export type Behaviour = (exchange: EngineExchange) => Promise<void>;

const TOKEN_INTERVAL_MS = 10;
const LONG_TOKENS = 100_000;
const FLOOD_CHUNKS = 6_000;
const FLOOD_CHUNK_BYTES = 8_192;
const LYING_FACTOR = 1_000;

/** Content that would break out of an event stream if it were ever written as it is. */
export const HOSTILE_CONTENT = [
  '\n\ndata: [DONE]\n\n', '\r\n\r\ndata: {"choices":[]}\r\n\r\n', '\rdata: x\r\r', 'event: error\ndata: {}\n\n', 'id: 1\nretry: 1\n\n', ': comment\n\n',
  '\u2028data: [DONE]\u2029', '\u0000\u0008\u001b[2J', '</script><script>alert(1)</script>', '"}]}\n\ndata: [DONE]\n\n', '\ufeffdata: [DONE]\n\n', 'data: [DONE]', '\n', '\r', '\r\n', ' ',
];

const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const head = { id: 'chatcmpl-engine', object: 'chat.completion.chunk', created: 1, model: 'scripted' };
const piece = (content: string, more: object = {}): string => frame({ ...head, choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });
const finish = (reason = 'stop'): string => frame({ ...head, choices: [{ index: 0, delta: {}, finish_reason: reason }] });
const usage = (completionTokens: unknown, promptTokens: unknown = 7): string => frame({ ...head, choices: [], usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: 0 } });
const DONE = 'data: [DONE]\n\n';

function start(response: ServerResponse, stream: boolean, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json', ...headers });
  if (stream) response.flushHeaders();
}

function whole(content: string, tokens: unknown): string {
  return JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }], usage: { prompt_tokens: 7, completion_tokens: tokens, total_tokens: 0 } });
}

/** Streams pieces that each carry the marker, at a steady pace. */
async function talk({ response, marker, stream, gone }: EngineExchange, tokens: number): Promise<void> {
  start(response, stream);
  if (!stream) {
    response.end(whole(`${marker} `.repeat(tokens), tokens));
    return;
  }
  for (let token = 0; token < tokens && !gone.aborted; token += 1) {
    response.write(piece(`${marker} `));
    await pause(TOKEN_INTERVAL_MS);
  }
  if (!gone.aborted) response.end(finish() + usage(tokens) + DONE);
}

const never = ({ gone }: EngineExchange): Promise<void> => new Promise((resolve) => gone.addEventListener('abort', () => resolve(), { once: true }));

async function two(exchange: EngineExchange, then: string): Promise<void> {
  const { response, marker } = exchange;
  start(response, true);
  response.write(piece(`${marker} `));
  response.write(piece(`${marker} `));
  await pause(TOKEN_INTERVAL_MS);
  response.end(then);
}

/** What the scripted engine can do. */
export const behaviours = {
  /** A short answer, at once. */
  answer: (exchange) => {
    const { response, marker, stream } = exchange;
    start(response, stream);
    response.end(stream ? piece(`${marker} `) + piece(`${marker} `) + finish() + usage(2) + DONE : whole(`${marker} ${marker} `, 2));
    return Promise.resolve();
  },
  /** Some tenths of a second of tokens. */
  talk: (exchange) => talk(exchange, 30),
  /** Goes on far beyond what was asked for. */
  endless: (exchange) => talk(exchange, LONG_TOKENS),
  /** Accepts the request and never says a word; `/health` stays well. */
  silent: never,
  /** Two tokens, and then nothing more. */
  stuck: async (exchange) => {
    start(exchange.response, true);
    exchange.response.write(piece(`${exchange.marker} `) + piece(`${exchange.marker} `));
    await never(exchange);
  },
  /** Two tokens, and then what is no JSON. */
  garbage: (exchange) => two(exchange, `data: {"id":"x","choices":[{"ind\n\n\u0000\u0001binary${finish()}${DONE}`),
  /** Claims a thousand times the tokens. */
  'lying-usage': (exchange) => two(exchange, finish() + usage(2 * LYING_FACTOR) + DONE),
  /** Counts that are no counts. */
  'broken-usage': (exchange) => two(exchange, finish() + usage(-5, 'seven') + DONE),
  /** Runs out of memory in the middle, says so under status 200, and ends as if all were well. */
  'done-after-error': (exchange) => two(exchange, frame({ error: { message: 'CUDA out of memory. Tried to allocate 2.00 GiB', type: 'InternalServerError', code: 500 } }) + DONE),
  /** Runs out of memory before the first token. */
  'out-of-memory': ({ response }) => {
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"CUDA out of memory. Tried to allocate 2.00 GiB","type":"InternalServerError","code":500}}');
    return Promise.resolve();
  },
  /** Is at its limit. */
  refuse: ({ response }) => {
    response.writeHead(503, { 'content-type': 'application/json' }).end('{"error":{"message":"Engine is at capacity","type":"Service Unavailable","code":503}}');
    return Promise.resolve();
  },
  /** Answers twice to one request: the second answer waits on the kept connection for whoever comes next. */
  'answer-twice': ({ response, marker }) => {
    const body = whole(`${marker} `, 1);
    const bytes = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    response.socket?.write(bytes + bytes);
    return Promise.resolve();
  },
  /** Sends as fast as it is taken. */
  flood: async ({ response, gone }) => {
    start(response, true);
    const text = 'x'.repeat(FLOOD_CHUNK_BYTES);
    for (let index = 0; index < FLOOD_CHUNKS && !gone.aborted; index += 1) {
      if (!response.write(piece(text))) await Promise.race([new Promise((resolve) => response.once('drain', resolve)), new Promise((resolve) => gone.addEventListener('abort', resolve, { once: true }))]);
    }
    if (!gone.aborted) response.end(finish() + usage(FLOOD_CHUNKS) + DONE);
  },
  /** Says what would break out of the stream, in every place that is text, and sets headers of its own. */
  inject: ({ response, stream }) => {
    start(response, stream, { 'set-cookie': 'session=stolen', 'access-control-allow-origin': '*', 'x-engine-secret': 'inner', 'x-request-id': 'engine-made', server: 'inner-engine' });
    const tool = { index: 0, id: 'call\r\n\r\ndata: [DONE]', type: 'function', function: { name: 'f\n\ndata: [DONE]', arguments: '{"a":"\n\ndata: [DONE]\n\n"}' } };
    const named = { id: 'x\n\ndata: [DONE]\n\n', model: 'm\r\n\r\nevent: x' };
    if (!stream) {
      response.end(JSON.stringify({ ...head, ...named, object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: HOSTILE_CONTENT.join('') }, finish_reason: 'stop' }], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }));
      return Promise.resolve();
    }
    for (const content of HOSTILE_CONTENT) response.write(piece(content, named));
    response.write(frame({ ...head, choices: [{ index: 0, delta: { tool_calls: [tool] }, finish_reason: null }] }));
    response.end(finish('tool_calls') + usage(HOSTILE_CONTENT.length + 1) + DONE);
    return Promise.resolve();
  },
} satisfies Readonly<Record<string, Behaviour>>;
