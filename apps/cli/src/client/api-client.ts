import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { z } from 'zod';

/** How to reach an installation. */
export interface Target {
  /** Base URL without a path, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly adminKey: string;
}

/** The platform refused or failed a call; `code` is from its catalogue. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  constructor(readonly status: number, readonly code: string, message: string, readonly requestId: string | undefined) {
    super(message);
  }
}

const CALL_TIMEOUT_MS = 600_000;

/** Typed calls of the HTTP API with the admin key. */
export class ApiClient {
  constructor(readonly target: Target) {}

  async call<Response extends z.ZodType>(method: 'GET' | 'POST' | 'DELETE', path: string, response: Response, body?: unknown): Promise<z.output<Response>> {
    const answer = await this.fetch(method, path, body, AbortSignal.timeout(CALL_TIMEOUT_MS));
    return response.parse(await answer.json());
  }

  /** The data of each event of an endless `text/event-stream`. */
  async *follow(path: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const answer = await this.fetch('GET', path, undefined, signal);
    if (answer.body === null) return;
    const events = answer.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).pipeThrough(new EventSourceParserStream());
    for await (const event of events) yield JSON.parse(event.data) as unknown;
  }

  private async fetch(method: string, path: string, body: unknown, signal: AbortSignal): Promise<Response> {
    const { url, adminKey } = this.target;
    const headers = { authorization: `Bearer ${adminKey}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    const answer = await fetch(`${url}${path}`, { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }).catch((error: unknown) => {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
      throw new ApiError(0, 'unreachable', `Cannot reach ${url}: ${cause}. Start the platform with \`npm run up\`, or name another with --url.`, undefined);
    });
    if (!answer.ok) throw await toApiError(answer);
    return answer;
  }
}

async function toApiError(answer: Response): Promise<ApiError> {
  const requestId = answer.headers.get('x-request-id') ?? undefined;
  const body = (await answer.json().catch(() => ({}))) as { error?: { message?: string; code?: string }; detail?: string; code?: string };
  const message = body.error?.message ?? body.detail ?? `HTTP ${answer.status}`;
  return new ApiError(answer.status, body.error?.code ?? body.code ?? 'unknown', message, requestId);
}
