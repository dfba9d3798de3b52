import { HEAD_LENGTH_HEADER } from '@penstock/domain-serving';
import type { Dispatcher } from 'undici';

/** A whole answer larger than this is refused. */
export const ANSWER_BYTES_MAX = 64 * 1_024 * 1_024;

export interface TensorReply {
  readonly status: number;
  readonly body: Uint8Array;
  /** Where binary tensors follow a JSON head of this length. */
  readonly headLength: string | undefined;
}

/** How a call ended. `unsent` says that no connection came about, so nothing was executed; after `lost` the engine may have done the work. */
export type TensorEnd =
  | { readonly kind: 'answered'; readonly reply: TensorReply }
  | { readonly kind: 'unsent' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'timed-out' }
  | { readonly kind: 'aborted' };

export interface TensorRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

const UNSENT_CODES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT']);

/** One request to an engine, from its first byte to the last one of its answer. Never throws. */
export async function callTensorEngine(dispatcher: Dispatcher, request: TensorRequest, limits: { readonly signal: AbortSignal; readonly timeoutMs: number }): Promise<TensorEnd> {
  const timeout = AbortSignal.timeout(limits.timeoutMs);
  try {
    const response = await dispatcher.request({
      method: request.method, path: request.path, headers: { ...request.headers }, body: request.body === undefined ? null : Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength), signal: AbortSignal.any([limits.signal, timeout]),
    });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response.body) {
      bytes += (chunk as Buffer).length;
      if (bytes > ANSWER_BYTES_MAX) {
        response.body.destroy();
        return { kind: 'too-large' };
      }
      chunks.push(chunk as Buffer);
    }
    const headLength = response.headers[HEAD_LENGTH_HEADER];
    return { kind: 'answered', reply: { status: response.statusCode, body: Buffer.concat(chunks), headLength: typeof headLength === 'string' ? headLength : undefined } };
  } catch (error) {
    if (timeout.aborted) return { kind: 'timed-out' };
    if (limits.signal.aborted) return { kind: 'aborted' };
    return { kind: UNSENT_CODES.has((error as NodeJS.ErrnoException).code ?? '') ? 'unsent' : 'lost' };
  }
}
