import type { EngineKind } from '@penstock/contract-events';
import type { InferMessage } from '@penstock/domain-serving';
import { Agent, request } from 'undici';

const BODY_BYTES_MAX = 8 * 1_024 * 1_024;

/** Engines close kept connections at times of their own; probes are rare enough to open one each. */
const dispatcher = new Agent({ pipelining: 0 });

export interface EngineReply {
  readonly status: number;
  readonly text: string;
}

/** One request to an engine. Throws when it does not answer within `timeoutMs`. */
export async function engineRequest(url: string, timeoutMs: number, body?: unknown): Promise<EngineReply> {
  return exchange(url, timeoutMs, body === undefined ? { method: 'GET' } : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

/** As {@link engineRequest}, with binary tensors behind the JSON head. */
export async function engineRequestBinary(url: string, timeoutMs: number, { head, binary }: InferMessage): Promise<EngineReply> {
  const json = Buffer.from(head);
  return exchange(url, timeoutMs, { method: 'POST', headers: { 'content-type': 'application/octet-stream', 'inference-header-content-length': String(json.length) }, body: Buffer.concat([json, binary]) });
}

type Message = { readonly method: 'GET' } | { readonly method: 'POST'; readonly headers: Record<string, string>; readonly body: string | Buffer };

async function exchange(url: string, timeoutMs: number, message: Message): Promise<EngineReply> {
  const response = await request(url, { dispatcher, signal: AbortSignal.timeout(timeoutMs), ...message });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) throw new Error(`the engine answered more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk as Buffer);
  }
  return { status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') };
}

/** True when the engine's own health route answers 200. It proves only that the HTTP server runs and, on llama.cpp and Triton, that the weights are loaded. */
export async function isHealthy(kind: EngineKind, url: string, timeoutMs: number): Promise<boolean> {
  return engineRequest(`${url}${kind === 'triton' ? '/v2/health/ready' : '/health'}`, timeoutMs).then(({ status }) => status === 200, () => false);
}
