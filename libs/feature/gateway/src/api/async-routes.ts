import { Inject, Injectable } from '@nestjs/common';
import type { AsyncResponseBody } from '@penstock/contract-http';
import { isId } from '@penstock/kernel';
import type { GatewayPorts } from '../gateway-ports.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type RouteCall, type RouteGroup } from '../http/route-call.js';
import { isDeserted } from '../stored/answer-head.js';
import { streamAnswer, wholeAnswer } from '../stored/deliver-answer.js';
import { storedBody } from '../stored/stored-body.js';
import type { StoredExchange } from '../stored/stored-exchange.js';
import type { StoredAnswer, StoredAnswers } from '../stored/stored-answers.js';
import { GATEWAY_PORTS, STORED_ANSWERS, STORED_EXCHANGE } from '../tokens.js';

const OK_STATUS_MAX = 299;

/** `GET /v1/async/{async_id}`: requests whose callers did not stay. */
@Injectable()
export class AsyncRoutes implements RouteGroup {
  readonly handlers = [onRoute('GET /v1/async/{async_id}', (call) => this.get(call))];

  constructor(
    @Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts,
    @Inject(STORED_ANSWERS) private readonly answers: StoredAnswers,
    @Inject(STORED_EXCHANGE) private readonly exchange: StoredExchange,
  ) {}

  private async get(call: RouteCall): Promise<unknown> {
    const id = call.params['async_id'] ?? '';
    const answer = isId(id) ? await this.answers.find(call.principal, id) : undefined;
    // An answer under an idempotency key alone is for whoever has the key.
    if (answer === undefined || !answer.head.isAsync) throw new RequestFault({ code: 'async_not_found', message: 'No such request, or its answer has expired. Answers are kept for 24 hours.', param: 'async_id' });
    if (!(call.request.headers.accept ?? '').includes('text/event-stream')) return this.describe(answer);
    await streamAnswer(answer, call.reply, this.ports.timers);
    return ANSWERED;
  }

  private async describe(answer: StoredAnswer): Promise<AsyncResponseBody> {
    if (isDeserted(answer.head, this.ports.clock.now())) return this.exchange.bodyOf(answer.head, 'failed', null);
    if (answer.head.state === 'running') return this.exchange.bodyOf(answer.head, 'running', null);
    const { head, body } = await wholeAnswer(answer);
    const response = storedBody(head, body);
    return this.exchange.bodyOf(head, response.status_code <= OK_STATUS_MAX ? 'completed' : 'failed', response);
  }
}
