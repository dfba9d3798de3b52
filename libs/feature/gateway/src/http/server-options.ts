import { describeError } from '@penstock/contract-http';
import type { IdSource } from '@penstock/kernel';
import { isId } from '@penstock/kernel';
import type { FastifyRequest, FastifyReply, FastifyServerOptions } from 'fastify';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { INTERNAL_REQUEST_ID_HEADER, type CallerCheck } from './caller.js';
import { faultOf } from './request-fault.js';
import { renderFault, sendFault } from './send-fault.js';

/** Headers larger than this are refused. */
export const HEADER_BYTES_MAX = 32 * 1_024;
/** A client that takes longer to send its headers holds a socket for nothing. */
export const HEADERS_TIMEOUT_MS = 20_000;
/** A whole request, an upload included. */
export const REQUEST_TIMEOUT_MS = 600_000;
export const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/** A model name may be long. */
const PATH_PART_LENGTH_MAX = 500;

/** A request id from outside could collide with another one's; only another service of ours may choose it. */
export function requestIdSource(ids: IdSource, callers: CallerCheck): (headers: IncomingHttpHeaders) => string {
  return (headers) => {
    const given = headers[INTERNAL_REQUEST_ID_HEADER];
    return typeof given === 'string' && isId(given) && callers.isInternal(headers) ? given : ids.next('req');
  };
}

/** Settings of the HTTP server: request ids, time limits, and the envelope for what is wrong before a route is found. */
export function serverOptions(ids: IdSource, callers: CallerCheck): FastifyServerOptions {
  const requestIdOf = requestIdSource(ids, callers);
  return {
    genReqId: (raw) => requestIdOf((raw as IncomingMessage).headers),
    requestIdHeader: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    http: { maxHeaderSize: HEADER_BYTES_MAX, headersTimeout: HEADERS_TIMEOUT_MS },
    routerOptions: { maxParamLength: PATH_PART_LENGTH_MAX },
    frameworkErrors: (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      sendFault(request, reply, faultOf(error));
    },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => {
      const fault = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? { code: 'request_timeout', message: 'The request did not arrive in time.' }
        : { code: 'invalid_value', message: 'The request is not valid HTTP, or its headers are too large.' };
      if (socket.destroyed || error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
      }
      const { headers, body } = renderFault(fault, '', ids.next('req'));
      const { status } = describeError(fault.code);
      const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${status} ${status === 408 ? 'Request Timeout' : 'Bad Request'}\r\n${lines.join('')}\r\n${body}`);
    },
  } as FastifyServerOptions;
}
