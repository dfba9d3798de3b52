import { describeError, retryHeaders, toOpenAiError, toProblem, toTensorError, type ApiFault } from '@penstock/contract-http';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** True for the paths that answer errors as problem details. */
export function isAdminPath(url: string): boolean {
  return /^\/+admin(\/|\?|$)/i.test(url);
}

/** True for the paths of the Open Inference Protocol, whose errors are one string. */
export function isTensorPath(url: string): boolean {
  return /^\/+v2(\/|\?|$)/i.test(url);
}

export interface RenderedFault {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** OpenAI's envelope, RFC 9457 under `/admin`, or the Open Inference Protocol's under `/v2`. */
export function renderFault(fault: ApiFault, url: string, requestId: string): RenderedFault {
  const { status } = describeError(fault.code);
  const isAdmin = isAdminPath(url);
  return {
    status,
    headers: {
      ...retryHeaders(fault),
      'content-type': isAdmin ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8',
      'x-request-id': requestId,
      ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    },
    body: JSON.stringify(isAdmin ? toProblem(fault, requestId) : isTensorPath(url) ? toTensorError(fault) : toOpenAiError(fault)),
  };
}

export function sendFault(request: FastifyRequest, reply: FastifyReply, fault: ApiFault): FastifyReply {
  const { status, headers, body } = renderFault(fault, request.raw.url ?? '', request.id);
  return reply.code(status).headers(headers).send(body);
}
