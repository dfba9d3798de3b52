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
  const response = await request(url, {
    dispatcher,
    signal: AbortSignal.timeout(timeoutMs),
    ...(body === undefined ? { method: 'GET' } : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += (chunk as Buffer).length;
    if (bytes > BODY_BYTES_MAX) throw new Error(`the engine answered more than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk as Buffer);
  }
  return { status: response.statusCode, text: Buffer.concat(chunks).toString('utf8') };
}

/** True when `/health` answers 200. It proves only that the HTTP server runs and, on llama.cpp, that the weights are loaded. */
export async function isHealthy(url: string, timeoutMs: number): Promise<boolean> {
  return engineRequest(`${url}/health`, timeoutMs).then(({ status }) => status === 200, () => false);
}
