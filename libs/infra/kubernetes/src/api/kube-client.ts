import { Agent, request, type Dispatcher } from 'undici';
import { z } from 'zod';
import type { ClusterAccess } from './cluster-access.js';
import { jsonLines } from './json-lines.js';

const REQUEST_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;
const BODY_BYTES_MAX = 64 * 1_048_576;
/** Bookmarks come about once a minute: a watch that is silent for longer than this is dead. */
const WATCH_SILENCE_MAX_MS = 150_000;

export type KubeMethod = 'GET' | 'POST' | 'DELETE' | 'PATCH';

/** JSON is YAML, so an apply needs no YAML writer. */
const CONTENT_TYPES = { json: 'application/json', apply: 'application/apply-patch+yaml', merge: 'application/merge-patch+json' } as const;
export type KubeContent = keyof typeof CONTENT_TYPES;

const statusBody = z.looseObject({ message: z.string().default(''), reason: z.string().default(''), code: z.int().optional() });
const watchEvent = z.looseObject({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']), object: z.unknown() });
export type WatchEvent = z.infer<typeof watchEvent>;

/** The API server refused. `status` is the HTTP status, `reason` Kubernetes' own word for it. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  constructor(readonly status: number, readonly reason: string, message: string) {
    super(message);
  }

  /** The version asked for is older than what the server remembers: list again. */
  get isExpired(): boolean {
    return this.status === 410;
  }
}

/** Speaks HTTP with one API server. */
export class KubeClient {
  private readonly dispatcher: Dispatcher;

  constructor(private readonly access: ClusterAccess) {
    const { ca, certificate } = access;
    this.dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS, ...(ca === undefined ? {} : { ca }), ...certificate } });
  }

  /** One request. Throws {@link KubeError} for an answer of 300 or more, and the network's own error when there is none. */
  async call(method: KubeMethod, path: string, body?: unknown, content: KubeContent = 'json'): Promise<unknown> {
    const response = await request(`${this.access.server}${path}`, {
      method, dispatcher: this.dispatcher, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      headers: await this.headers(body === undefined ? undefined : CONTENT_TYPES[content]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await readText(response.body);
    if (response.statusCode >= 300) throw toError(response.statusCode, text, `${method} ${path}`);
    return JSON.parse(text) as unknown;
  }

  /** Events of a watch until the server ends it, the connection breaks (throws) or `signal` fires (throws). */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<WatchEvent> {
    const response = await request(`${this.access.server}${path}`, {
      method: 'GET', dispatcher: this.dispatcher, signal, headersTimeout: REQUEST_TIMEOUT_MS, bodyTimeout: WATCH_SILENCE_MAX_MS, headers: await this.headers(undefined),
    });
    if (response.statusCode >= 300) throw toError(response.statusCode, await readText(response.body), `GET ${path}`);
    for await (const line of jsonLines(response.body)) {
      const event = watchEvent.parse(line);
      if (event.type === 'ERROR') {
        const status = statusBody.parse(event.object);
        throw new KubeError(status.code ?? 500, status.reason, `GET ${path}: ${status.message}`);
      }
      yield event;
    }
  }

  async close(): Promise<void> {
    await this.dispatcher.destroy();
  }

  private async headers(contentType: string | undefined): Promise<Record<string, string>> {
    const token = await this.access.token();
    return { accept: 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...(contentType === undefined ? {} : { 'content-type': contentType }) };
  }
}

async function readText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new Error(`the API server answered more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function toError(status: number, text: string, what: string): KubeError {
  let parsed: z.infer<typeof statusBody> | undefined;
  try {
    parsed = statusBody.parse(JSON.parse(text));
  } catch {
    parsed = undefined;
  }
  return new KubeError(status, parsed?.reason ?? '', `${what}: HTTP ${status}: ${parsed?.message ?? text.slice(0, 300)}`);
}
