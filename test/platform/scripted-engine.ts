import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { behaviours, type Behaviour } from './engine-behaviours.js';

/** What the engine saw of one generation. */
export interface SeenRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  readonly behaviour: string;
  readonly marker: string;
  /** When the other side closed the connection before the answer was over, in `performance.now()` milliseconds. */
  abortedAtMs: number | undefined;
  isOver: boolean;
}

export const SCRIPTED_MODEL = 'scripted';
const SCRIPT = /\[\[(\w[\w-]*) ([\w.-]+)\]\]/;

/** The text of a prompt that makes the scripted engine behave in a certain way; `marker` comes back in every piece of the answer. */
export function scripted(behaviour: keyof typeof behaviours, marker = 'none'): string {
  return `[[${behaviour} ${marker}]]`;
}

/** An engine with vLLM's surface that does, request by request, what the prompt tells it to. It lives in the drill's own process, which so knows the truth. */
export class ScriptedEngine {
  readonly seen: SeenRequest[] = [];
  private readonly server: Server;

  private constructor() {
    this.server = createServer({ keepAliveTimeout: 5_000 }, (request, response) => void this.answer(request, response).catch(() => response.destroy()));
  }

  static async start(): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine();
    await new Promise<void>((resolve) => engine.server.listen(0, '127.0.0.1', resolve));
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Generations that a prompt asked for, newest last; the agent's probes carry no script and are left out. */
  of(behaviour: keyof typeof behaviours): readonly SeenRequest[] {
    return this.seen.filter((request) => request.behaviour === behaviour);
  }

  get open(): number {
    return this.seen.filter((request) => !request.isOver).length;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?')[0];
    if (request.method === 'GET') return void this.answerGet(path ?? '', response);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>;
    const script = SCRIPT.exec(promptOf(body));
    const name = (script?.[1] ?? 'answer') as keyof typeof behaviours;
    const seen: SeenRequest = { headers: request.headers, body, behaviour: script === null ? 'probe' : name, marker: script?.[2] ?? 'none', abortedAtMs: undefined, isOver: false };
    if (script !== null) this.seen.push(seen);
    const gone = new AbortController();
    response.once('close', () => {
      seen.isOver = true;
      if (!response.writableFinished) seen.abortedAtMs = performance.now();
      gone.abort();
    });
    const behaviour: Behaviour = behaviours[name] ?? behaviours.answer;
    await behaviour({ response, marker: seen.marker, stream: body['stream'] === true, tokensMax: Number(body['max_tokens'] ?? body['max_completion_tokens'] ?? 8), gone: gone.signal });
  }

  private answerGet(path: string, response: ServerResponse): void {
    if (path === '/v1/models') response.end(JSON.stringify({ object: 'list', data: [{ id: SCRIPTED_MODEL, object: 'model', created: 0, owned_by: 'drill', max_model_len: 8_192 }] }));
    else if (path === '/version') response.end('{"version":"0.32.0"}');
    else if (path === '/metrics') response.end(`vllm:num_requests_running{model_name="${SCRIPTED_MODEL}"} ${this.open}\nvllm:num_requests_waiting{model_name="${SCRIPTED_MODEL}"} 0\n`);
    else response.end();
  }
}

function promptOf(body: Readonly<Record<string, unknown>>): string {
  const messages = Array.isArray(body['messages']) ? (body['messages'] as { content?: unknown }[]) : [];
  const content = messages.at(-1)?.content ?? body['prompt'];
  return typeof content === 'string' ? content : JSON.stringify(content ?? '');
}
