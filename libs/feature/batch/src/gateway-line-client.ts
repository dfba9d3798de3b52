import { Agent, request } from 'undici';
import type { BatchJobState } from '@penstock/domain-batching';

/** A longer answer fails its line: a chunk of answers must fit into memory. */
export const ANSWER_BYTES_MAX = 4 * 1_024 * 1_024;
const CONNECT_TIMEOUT_MS = 5_000;
/** Shorter than what servers keep an idle connection for, so that a request meets no closed one. */
const KEEP_ALIVE_MS = 3_000;

export interface LineCall {
  readonly job: Pick<BatchJobState, 'batchId' | 'organisationId' | 'projectId' | 'keyId' | 'endpoint'>;
  readonly requestId: string;
  readonly bodyText: string;
  readonly signal: AbortSignal;
}

/** What one try to send a line came to. */
export type LineReply =
  | { readonly kind: 'answer'; readonly statusCode: number; readonly requestId: string; readonly bodyText: string; readonly mayRetry: boolean; readonly retryAfterMs: number | undefined }
  /** Nothing reached the gateway. */
  | { readonly kind: 'unreachable'; readonly reason: string }
  /** The connection broke after the request was sent: it may have been carried out. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** It was carried out, and its answer is longer than {@link ANSWER_BYTES_MAX}. */
  | { readonly kind: 'oversized' }
  | { readonly kind: 'timeout' };

export interface GatewayLineClientOptions {
  readonly gatewayUrl: string;
  readonly internalToken: string;
  readonly concurrency: number;
  readonly timeoutMs: number;
}

/** Sends single lines to the gateway, on behalf of the tenant of the job. */
export class GatewayLineClient {
  private readonly agent: Agent;

  constructor(private readonly options: GatewayLineClientOptions) {
    this.agent = new Agent({ connections: options.concurrency, pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS, connect: { timeout: CONNECT_TIMEOUT_MS }, headersTimeout: options.timeoutMs, bodyTimeout: options.timeoutMs });
  }

  /** Rejects only when `signal` is aborted. */
  async send(call: LineCall): Promise<LineReply> {
    const limit = AbortSignal.timeout(this.options.timeoutMs);
    try {
      const response = await request(new URL(call.job.endpoint, this.options.gatewayUrl), {
        method: 'POST', dispatcher: this.agent, headers: this.headers(call), body: call.bodyText, signal: AbortSignal.any([call.signal, limit]),
      });
      const bodyText = await readBounded(response.body);
      if (bodyText === undefined) return { kind: 'oversized' };
      return {
        kind: 'answer', statusCode: response.statusCode, bodyText,
        requestId: single(response.headers['x-request-id']) ?? call.requestId,
        mayRetry: isTransient(response.statusCode) && single(response.headers['x-should-retry']) !== 'false',
        retryAfterMs: retryAfterMs(response.headers),
      };
    } catch (error) {
      if (call.signal.aborted) throw error;
      if (limit.aborted) return { kind: 'timeout' };
      return failureOf(error);
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private headers({ job, requestId }: LineCall): Record<string, string> {
    const tenant = { organisationId: job.organisationId, projectId: job.projectId, keyId: job.keyId, batchId: job.batchId };
    return {
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'x-penstock-internal': this.options.internalToken,
      'x-penstock-tenant': JSON.stringify(tenant),
      'x-penstock-request-id': requestId,
    };
  }
}

const TOO_MANY_REQUESTS = 429;
const REQUEST_TIMEOUT = 408;
/** The gateway does not know our token: a fault of the installation, not of the line. */
const UNAUTHORISED = 401;

function isTransient(statusCode: number): boolean {
  return statusCode === TOO_MANY_REQUESTS || statusCode === REQUEST_TIMEOUT || statusCode >= 500;
}

/** True for an answer that says nothing about the line, only that this service is not let in. */
export function isShutOut(reply: LineReply): boolean {
  return reply.kind === 'answer' && reply.statusCode === UNAUTHORISED;
}

const NOT_SENT_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

function failureOf(error: unknown): LineReply {
  const code = String((error as { code?: unknown }).code ?? '');
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return { kind: 'timeout' };
  return { kind: NOT_SENT_CODES.has(code) ? 'unreachable' : 'broken', reason: code === '' ? 'the connection failed' : code };
}

async function readBounded(body: AsyncIterable<Uint8Array>): Promise<string | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    if (bytes > ANSWER_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function retryAfterMs(headers: Record<string, string | string[] | undefined>): number | undefined {
  const milliseconds = Number(single(headers['retry-after-ms']) ?? NaN);
  if (Number.isFinite(milliseconds)) return milliseconds;
  const seconds = Number(single(headers['retry-after']) ?? NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
