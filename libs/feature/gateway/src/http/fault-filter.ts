import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Logger } from '@penstock/kernel';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { methodsOf } from './path-table.js';
import { faultOf } from './request-fault.js';
import { sendFault } from './send-fault.js';

/** The last stop of everything that no route of ours answered: unknown URLs, wrong methods, faults before a route is found. */
@Catch()
export class FaultFilter implements ExceptionFilter {
  constructor(private readonly logger: Logger) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    if (error instanceof HttpException && error.getStatus() === 404) {
      sendUnknownUrl(request, reply);
      return;
    }
    // The framework's own refusals, as of a body on a path that nobody serves, are the caller's.
    const fault = faultOf(error instanceof HttpException ? { statusCode: error.getStatus() } : error);
    if (fault.code === 'internal_error') this.logger.error({ err: error, requestId: request.id }, 'request failed');
    void sendFault(request, reply, fault);
  }
}

/** Longer URLs are not repeated in an error message. */
const SHOWN_URL_MAX = 200;

export function sendUnknownUrl(request: FastifyRequest, reply: FastifyReply): void {
  const url = request.raw.url ?? '';
  const path = (url.split('?')[0] ?? '').slice(0, SHOWN_URL_MAX);
  const allowed = methodsOf(url);
  if (allowed.length > 0) {
    reply.header('allow', allowed.join(', '));
    void sendFault(request, reply, { code: 'method_not_allowed', message: `Not allowed to ${request.method} on ${path}. Allowed: ${allowed.join(', ')}.` });
    return;
  }
  void sendFault(request, reply, { code: 'unknown_url', message: `Unknown request URL: ${request.method} ${path}. Please check the URL for typos.` });
}
