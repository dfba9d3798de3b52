import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EngineExchange {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly headers: IncomingMessage['headers'];
  readonly response: ServerResponse;
  /** Resolves when the gateway closed the connection before the answer was complete. */
  readonly aborted: Promise<void>;
}

export type EngineBehaviour = (exchange: EngineExchange) => void | Promise<void>;

const chunk = (delta: object, finish: string | null, tokens: number) => `data: ${JSON.stringify({
  id: 'chatcmpl-inner', object: 'chat.completion.chunk', created: 1, model: 'inner-model', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish, token_ids: [1] }],
  usage: { prompt_tokens: 5, total_tokens: 5 + tokens, completion_tokens: tokens },
})}\n\n`;

/** Chunks as vLLM sends them; `count` of them carry one token each. */
export const engineFrames = {
  role: () => chunk({ role: 'assistant', content: '' }, null, 0),
  token: (index: number) => chunk({ content: `t${index} ` }, null, index + 1),
  finish: (count: number) => chunk({}, 'length', count),
  usage: (count: number) => `data: ${JSON.stringify({ id: 'chatcmpl-inner', object: 'chat.completion.chunk', model: 'inner-model', choices: [], usage: { prompt_tokens: 5, total_tokens: 5 + count, completion_tokens: count } })}\n\n`,
  done: 'data: [DONE]\n\n',
};

/** Answers as asked: `max_tokens` tokens, streamed or whole. */
export const answerAll: EngineBehaviour = ({ body, response }) => {
  const count = typeof body['max_tokens'] === 'number' ? body['max_tokens'] : 3;
  const text = Array.from({ length: count }, (_, index) => `t${index} `).join('');
  if (body['stream'] !== true) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({
      id: 'chatcmpl-inner', object: 'chat.completion', created: 1, model: 'inner-model', choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: 'length', stop_reason: null }],
      usage: { prompt_tokens: 5, total_tokens: 5 + count, completion_tokens: count }, system_fingerprint: 'vllm-secret',
    }));
    return;
  }
  startStream(response);
  response.write(engineFrames.role());
  for (let index = 0; index < count; index += 1) response.write(engineFrames.token(index));
  response.end(engineFrames.finish(count) + engineFrames.usage(count) + engineFrames.done);
};

export function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
}

/** An engine on loopback that behaves as a test tells it to. */
export class FakeEngine {
  readonly requests: EngineExchange[] = [];
  /** How the next requests are answered; the last one stays. */
  behaviours: EngineBehaviour[] = [answerAll];
  private readonly server: Server;

  private constructor() {
    this.server = createServer((request, response) => void this.receive(request, response));
  }

  static async start(): Promise<FakeEngine> {
    const engine = new FakeEngine();
    await new Promise<void>((resolve) => engine.server.listen(0, '127.0.0.1', resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const piece of request) text += String(piece);
    const aborted = new Promise<void>((resolve) => response.once('close', () => {
      if (!response.writableFinished) resolve();
    }));
    const exchange = { path: request.url ?? '', body: JSON.parse(text) as Record<string, unknown>, headers: request.headers, response, aborted };
    this.requests.push(exchange);
    const behaviour = this.behaviours.length > 1 ? this.behaviours.shift() : this.behaviours[0];
    await behaviour?.(exchange);
  }
}
