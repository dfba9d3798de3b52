import type { Msg, NatsConnection } from '@nats-io/transport-node';

/** JetStream said no. `errorCode` is the server's own five-digit code. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  constructor(readonly code: number, readonly errorCode: number, description: string) {
    super(`${description} (${errorCode})`);
  }
}

/** The server's codes that decisions hang on. */
export const brokerCodes = {
  wrongLastSequence: 10_071,
  /** The same, while another write to the subject is in flight. It does not tell the sequence. */
  wrongLastSequenceInFlight: 10_164,
  streamFull: 10_077,
  storageExceeded: 10_047,
  streamNameInUse: 10_058,
  streamNotFound: 10_059,
  consumerNotFound: 10_014,
  messageNotFound: 10_037,
  messageGone: 10_057,
  batchHoldsDuplicate: 10_201,
} as const;

export const API_TIMEOUT_MS = 3_000;

interface ApiReply {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description: string };
}

/** One request to JetStream's API. Throws {@link BrokerError} for a refusal; anything else means that no answer came. */
export async function brokerRequest<Reply extends object>(connection: NatsConnection, subject: string, body: object | undefined, timeoutMs = API_TIMEOUT_MS): Promise<Reply> {
  const message = await connection.request(subject, body === undefined ? '' : JSON.stringify(body), { timeout: timeoutMs });
  const reply = parseJson(message) as Reply & ApiReply;
  if (reply.error !== undefined) throw new BrokerError(reply.error.code, reply.error.err_code ?? 0, reply.error.description);
  return reply;
}

function parseJson(message: Msg): unknown {
  return JSON.parse(textOf(message.data));
}

/** Decodes UTF-8. The client's bodies are views of Node buffers, which decode small texts faster than a `TextDecoder`. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.isBuffer(bytes) ? bytes.toString('utf8') : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** True when the same request may succeed a moment later: no answer, no leader, or the server says that it is not ready. */
export function isTransient(error: unknown): boolean {
  if (error instanceof BrokerError) return error.code >= 500 && error.errorCode !== brokerCodes.streamFull && error.errorCode !== brokerCodes.storageExceeded;
  return true;
}

export const NANOS_PER_MS = 1_000_000;
const BACKOFF_FIRST_MS = 25;
const BACKOFF_MAX_MS = 1_000;

/** Grows from 25 ms to a second; spread, so that writers which failed together do not come back together. */
export function backoffMs(attempt: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2);
}

/** Resolves after `delayMs`, or at once when `signal` aborts. */
export function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, delayMs);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

/** Waits for `work`, but never longer than `limitMs`; a rejection ends the wait as well. True when it ended in time. */
export async function atMost(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  const limit = new AbortController();
  const ended = work.then(() => true, () => true);
  const isInTime = await Promise.race([ended, pause(limitMs, limit.signal).then(() => false)]);
  limit.abort();
  return isInTime;
}
