import type { Principal } from '@penstock/domain-access';
import { Agent, type Dispatcher } from 'undici';
import { INTERNAL_REQUEST_ID_HEADER, INTERNAL_TENANT_HEADER, INTERNAL_TOKEN_HEADER } from '../http/caller.js';
import { internalFault } from '../http/request-fault.js';
import { renderFault } from '../http/send-fault.js';
import type { RunningAnswer } from './running-answer.js';

/** One request to this gateway, on behalf of a caller who need not stay. */
export interface Execution {
  readonly requestId: string;
  readonly principal: Principal;
  readonly path: string;
  /** What the body is to be read by. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly traceparent: string | undefined;
  readonly isAsync: boolean;
}

/** Headers of the answer that are kept with it. */
const KEPT_HEADERS = /^(content-type|cache-control|x-accel-buffering|retry-after|retry-after-ms|x-should-retry|ratelimit|ratelimit-policy|x-ratelimit-.+|openai-.+|inference-header-content-length)$/;
/** Nothing of an answer with these statuses was billed, and the same request may succeed later. */
const mayRetry = (status: number): boolean => status === 408 || status === 409 || status === 429 || status >= 500;
/** What a stream ends with when this gateway stops; the last bytes of an answer are searched for it. */
const SHUT_DOWN_MARK = '"code":"shutting_down"';
const TAIL_PIECES = 8;

/**
 * Carries requests out over loopback, through the same route and the checks that all others pass: what is stored is what a client
 * gets, and the client that asked may leave.
 */
export class SelfCall {
  private readonly agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

  constructor(private readonly token: string, private readonly ownUrl: () => string) {}

  async run(execution: Execution, answer: RunningAnswer): Promise<void> {
    try {
      const response = await this.send(execution);
      answer.begin(response.statusCode, keptHeaders(response.headers));
      for await (const piece of response.body) {
        if (answer.add(piece as Uint8Array)) continue;
        response.body.destroy();
        await answer.end('keep');
        return;
      }
      await answer.end(fateOf(response.statusCode, answer, execution.isAsync));
    } catch (error) {
      if (answer.head.status === null) fail(execution, answer);
      await answer.end(execution.isAsync ? 'keep' : 'abandon');
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private send({ requestId, principal, path, headers, body, traceparent }: Execution): Promise<Dispatcher.ResponseData> {
    const { organisationId, projectId, keyId } = principal;
    return this.agent.request({
      origin: this.ownUrl(), path, method: 'POST', body,
      headers: {
        ...headers,
        [INTERNAL_TOKEN_HEADER]: this.token,
        [INTERNAL_TENANT_HEADER]: JSON.stringify({ organisationId, projectId, keyId, batchId: null }),
        [INTERNAL_REQUEST_ID_HEADER]: requestId,
        ...(traceparent === undefined ? {} : { traceparent }),
      },
    });
  }
}

function fail({ path, requestId }: Execution, answer: RunningAnswer): void {
  const { status, headers, body } = renderFault(internalFault, path, requestId);
  answer.begin(status, keptHeaders(headers));
  answer.add(Buffer.from(body));
}

function keptHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value !== undefined && KEPT_HEADERS.test(name) ? [[name, String(value)]] : [])));
}

function fateOf(status: number, answer: RunningAnswer, isAsync: boolean): 'keep' | 'forget' | 'abandon' {
  if (!isAsync && Buffer.concat(answer.pieces.slice(-TAIL_PIECES)).includes(SHUT_DOWN_MARK)) return 'abandon';
  return mayRetry(status) && !isAsync ? 'forget' : 'keep';
}
