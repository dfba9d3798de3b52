import { setTimeout as pause } from 'node:timers/promises';

/** What one client saw of one request. */
export interface Outcome {
  readonly ok: boolean;
  readonly phase: string;
  readonly stream: boolean;
  readonly requestId: string | undefined;
  readonly completionTokens: number | undefined;
  readonly error: string | undefined;
}

const REQUEST_TIMEOUT_MS = 60_000;
/** A client that is refused waits a little, as SDKs do, so that a drill measures failures and not a busy loop. */
const PAUSE_AFTER_FAILURE_MS = 100;

/** A fixed number of clients that ask one question after the other until they are stopped. */
export class Load {
  readonly outcomes: Outcome[] = [];
  private phase = 'warm-up';
  private running = true;
  private readonly workers: Promise<void>[];

  constructor(private readonly baseUrl: string, private readonly apiKey: string, private readonly model: string, clients: number) {
    this.workers = Array.from({ length: clients }, (_, index) => this.work(index));
  }

  /** Names what happens from now on; a request belongs to the phase in which it ended. */
  enter(phase: string): void {
    this.phase = phase;
  }

  /** Resolves once `count` more requests have succeeded, or after `limitMs`; tells whether they did. */
  async untilSucceeded(count: number, limitMs: number): Promise<boolean> {
    const start = this.outcomes.length;
    const deadline = performance.now() + limitMs;
    while (performance.now() < deadline) {
      if (this.outcomes.slice(start).filter((outcome) => outcome.ok).length >= count) return true;
      await pause(20);
    }
    return false;
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.workers);
  }

  private async work(index: number): Promise<void> {
    for (let turn = 0; this.running; turn += 1) {
      const stream = (index + turn) % 2 === 0;
      const outcome = await this.ask(stream, `Client ${index}, question ${turn}: tell a story.`);
      this.outcomes.push(outcome);
      if (!outcome.ok) await pause(PAUSE_AFTER_FAILURE_MS);
    }
  }

  private async ask(stream: boolean, question: string): Promise<Outcome> {
    let requestId: string | undefined;
    try {
      const body = { model: this.model, messages: [{ role: 'user', content: question }], max_tokens: 40, stream, ...(stream ? { stream_options: { include_usage: true } } : {}) };
      const answer = await fetch(`${this.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      requestId = answer.headers.get('x-request-id') ?? undefined;
      const text = await answer.text();
      if (!answer.ok) return this.outcome(false, stream, requestId, undefined, `HTTP ${answer.status}: ${text.slice(0, 300)}`);
      const usage = stream ? streamedUsage(text) : (JSON.parse(text) as { usage?: { completion_tokens: number } }).usage;
      if (usage === undefined) return this.outcome(false, stream, requestId, undefined, `no usage in the answer: ${text.slice(-300)}`);
      return this.outcome(true, stream, requestId, usage.completion_tokens, undefined);
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
      return this.outcome(false, stream, requestId, undefined, `${error instanceof Error ? error.message : String(error)}${cause}`);
    }
  }

  private outcome(ok: boolean, stream: boolean, requestId: string | undefined, completionTokens: number | undefined, error: string | undefined): Outcome {
    return { ok, phase: this.phase, stream, requestId, completionTokens, error };
  }
}

/** The usage of a stream that ended well; an error frame or a missing `[DONE]` gives none. */
function streamedUsage(text: string): { completion_tokens: number } | undefined {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: ')).map((event) => event.slice('data: '.length));
  if (events.at(-1) !== '[DONE]') return undefined;
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event) as { usage?: { completion_tokens: number } | null; error?: unknown });
  return chunks.some((chunk) => chunk.error !== undefined) ? undefined : (chunks.at(-1)?.usage ?? undefined);
}
