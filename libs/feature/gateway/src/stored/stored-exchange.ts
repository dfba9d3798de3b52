import { scopeOf, type AsyncResponseBody, type RouteContract } from '@penstock/contract-http';
import type { Principal } from '@penstock/domain-access';
import { findEndpointByName, splitAdapterName } from '@penstock/domain-catalog';
import { HEAD_LENGTH_HEADER } from '@penstock/domain-serving';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { SESSION_HEADER } from '../chat/prompt-facts.js';
import type { GatewayViews } from '../gateway-views.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { Caller } from '../http/caller.js';
import { RequestFault } from '../http/request-fault.js';
import { loadingEtaMs } from '../loading/loading-eta.js';
import { ANSWER_TTL_MS, answerIdOf, fingerprintOf, type AnswerHead } from './answer-head.js';
import { deliverAnswer } from './deliver-answer.js';
import type { StoredAnswers } from './stored-answers.js';

const IDEMPOTENCY_KEY_LENGTH_MAX = 255;

/** Requests that ask for their answer to be stored: with an Idempotency-Key, or with `Prefer: respond-async`. */
export class StoredExchange {
  constructor(private readonly answers: StoredAnswers, private readonly ports: Pick<GatewayPorts, 'clock' | 'ids'>, private readonly views: GatewayViews) {}

  /** Whether the request is for here and not for the route's handler. */
  takes(request: FastifyRequest, contract: RouteContract, caller: Caller): boolean {
    if (contract.method !== 'POST' || contract.bodyKind === 'multipart' || caller.batchId !== null || scopeOf(contract) !== 'inference') return false;
    return request.headers['idempotency-key'] !== undefined || prefersAsync(request);
  }

  async answer(request: FastifyRequest, reply: FastifyReply, { principal }: Caller): Promise<void> {
    const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const path = (request.raw.url ?? '').split('?')[0] ?? '';
    const headers = bodyHeaders(request);
    const isAsync = prefersAsync(request);
    const idempotencyKey = keyOf(request);
    const answer = await this.answers.obtain({
      answerId: idempotencyKey === undefined ? this.ports.ids.next('async') : answerIdOf(principal.organisationId, idempotencyKey),
      fingerprint: fingerprintOf(request.method, path.replace(/^\/v1\//, '/'), body, headers[HEAD_LENGTH_HEADER]),
      requestId: request.id, principal, path, headers, body, isAsync, traceparent: headerOf(request, 'traceparent'), endpointId: this.endpointOf(principal, body),
    });
    if (!isAsync) {
      await deliverAnswer(answer, reply);
      return;
    }
    const value = this.bodyOf(answer.head, 'running', null);
    await reply.code(202).headers({ location: value.url, 'preference-applied': 'respond-async' }).type('application/json; charset=utf-8').send(JSON.stringify(value));
  }

  /** How an answer is described to those who poll. */
  bodyOf(head: AnswerHead, status: AsyncResponseBody['status'], response: AsyncResponseBody['response']): AsyncResponseBody {
    return {
      id: head.id, object: 'async.response', status, request_id: head.requestId, created_at: Math.floor(head.startedAtMs / 1_000), expires_at: Math.floor((head.startedAtMs + ANSWER_TTL_MS) / 1_000), url: `/v1/async/${head.id}`,
      loading_eta_ms: status === 'running' && head.endpointId !== null ? loadingEtaMs(this.views.fleet.state(), head.endpointId, this.ports.clock.now()) : null,
      response,
    };
  }

  /** Only for saying how far a start is; whether the model may be called at all is for the request itself to find out. */
  private endpointOf(principal: Principal, body: Buffer): string | null {
    try {
      const { model } = JSON.parse(body.toString('utf8')) as { model?: unknown };
      if (typeof model !== 'string') return null;
      const found = [model, splitAdapterName(model)?.base].flatMap((name) => (name === undefined ? [] : findEndpointByName(this.views.catalog.state(), name, principal.organisationId) ?? []));
      return found[0]?.endpointId ?? null;
    } catch {
      return null;
    }
  }
}

/** What the body is to be read by, and whose conversation it is part of. */
function bodyHeaders(request: FastifyRequest): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of ['content-type', HEAD_LENGTH_HEADER, SESSION_HEADER]) {
    const value = headerOf(request, name);
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

function prefersAsync(request: FastifyRequest): boolean {
  return (headerOf(request, 'prefer') ?? '').split(',').some((preference) => preference.trim().toLowerCase() === 'respond-async');
}

/** Quoted as in draft-ietf-httpapi-idempotency-key-header-07, or bare as most clients send it. */
function keyOf(request: FastifyRequest): string | undefined {
  const given = headerOf(request, 'idempotency-key');
  if (given === undefined) return undefined;
  const key = given.replace(/^"(.*)"$/, '$1');
  if (key.length === 0 || key.length > IDEMPOTENCY_KEY_LENGTH_MAX) throw new RequestFault({ code: 'invalid_value', message: `'Idempotency-Key' must have 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters.`, param: 'Idempotency-Key' });
  return key;
}

function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
