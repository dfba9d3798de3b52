import multipart from '@fastify/multipart';
import { routes, scopeOf, type ApiFault, type RouteContract } from '@penstock/contract-http';
import { assert, type Logger } from '@penstock/kernel';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayConfig } from '../gateway-config.js';
import type { GatewayMetrics } from '../gateway-metrics.js';
import type { StoredExchange } from '../stored/stored-exchange.js';
import type { Caller, CallerCheck } from './caller.js';
import { decodeBody } from './decode-body.js';
import { overloaded, type LoadGuard } from './load-guard.js';
import { pathsOf } from './path-table.js';
import { parseWith, plainQuery, readDocument } from './read-body.js';
import { faultOf, RequestFault } from './request-fault.js';
import { ANSWERED, type RouteGroup, type RouteHandler } from './route-call.js';
import { sendFault } from './send-fault.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on every route of the contract. A route without it is not served. */
    contract?: RouteContract;
  }
  interface FastifyRequest {
    caller?: Caller;
  }
}

export const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'This gateway is stopping. Send the request again; another one will answer.', retryAfterMs: 500 };

export interface RouteParts {
  readonly config: GatewayConfig;
  readonly callers: CallerCheck;
  readonly metrics: GatewayMetrics;
  readonly logger: Logger;
  readonly isDraining: () => boolean;
  readonly stored: StoredExchange;
  readonly guard: LoadGuard;
}

/** Routes that the shell adds for orchestrators. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(['/livez', '/readyz', '/health', '/metrics']);
const FORM_FIELDS_MAX = 20;
const FORM_FIELD_BYTES_MAX = 10_000;

/** Serves every route of the contract, each behind the access its contract asks for. Fails when a route has no handler, or a handler no route. */
export async function registerRoutes(instance: FastifyInstance, groups: readonly RouteGroup[], parts: RouteParts): Promise<void> {
  const handlers = new Map(groups.flatMap((group) => group.handlers).map((handler) => [handler.route, handler]));
  instance.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id);
    // Whoever adds a route beside the contract has to say who may call it.
    if (!request.is404 && request.routeOptions.config.contract === undefined && !HEALTH_PATHS.has(request.routeOptions.url ?? '')) throw new RequestFault({ code: 'unknown_url', message: 'Unknown request URL.' });
  });
  await instance.register(async (scope) => {
    scope.setErrorHandler((error, request, reply) => {
      const fault = faultOf(error);
      if (fault.code === 'internal_error') parts.logger.error({ err: error, requestId: request.id }, 'request failed');
      return sendFault(request, reply, fault);
    });
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(/^application\/(?:[\w.+-]+\+)?json\b/, { parseAs: 'buffer', bodyLimit: parts.config.REQUEST_BYTES_MAX }, (_request, body, done) => done(null, body));
    await scope.register(multipart, { limits: { fileSize: parts.config.UPLOAD_BYTES_MAX, files: 1, fields: FORM_FIELDS_MAX, fieldSize: FORM_FIELD_BYTES_MAX, parts: FORM_FIELDS_MAX + 1 } });
    scope.addHook('onResponse', async (request, reply) => countAnswer(request, reply, parts));
    await scope.register(async (tensors) => {
      // Tensors come with whatever content type, or none: the protocol tells them apart by a header of its own.
      tensors.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: parts.config.REQUEST_BYTES_MAX }, (_request, body, done) => done(null, body));
      addRoutes(tensors, routes.filter(({ bodyKind }) => bodyKind === 'tensor'), handlers, parts);
    });
    addRoutes(scope, routes.filter(({ bodyKind }) => bodyKind !== 'tensor'), handlers, parts);
  });
  assert(handlers.size === 0, `no contract for ${[...handlers.keys()].join(', ')}`);
}

function addRoutes(scope: FastifyInstance, contracts: readonly RouteContract[], handlers: Map<string, RouteHandler>, parts: RouteParts): void {
  for (const contract of contracts) {
    const name = `${contract.method} ${contract.path}`;
    const handler = handlers.get(name);
    assert(handler !== undefined, `route ${name} has a handler`);
    handlers.delete(name);
    for (const url of pathsOf(contract)) addRoute(scope, url, contract, handler, parts);
  }
}

function addRoute(scope: FastifyInstance, url: string, contract: RouteContract, handler: RouteHandler, parts: RouteParts): void {
  const keyScope = scopeOf(contract);
  scope.route({
    method: contract.method,
    url,
    config: { contract },
    bodyLimit: contract.bodyKind === 'multipart' ? parts.config.UPLOAD_BYTES_MAX + 1_024 * 1_024 : parts.config.REQUEST_BYTES_MAX,
    onRequest: async (request) => {
      if (parts.isDraining()) throw new RequestFault(shuttingDownFault);
      request.caller = parts.callers.identify(request.headers, contract.access, keyScope);
      // Requests to models come this way too, from pages, compressed, or to be stored.
      if (handler.direct !== undefined && !parts.guard.mayTake()) throw overloaded;
    },
    preParsing: (request, _reply, payload, done) => {
      try {
        done(null, decodeBody(request.headers, payload, contract.bodyKind === 'multipart' ? 0 : parts.config.REQUEST_BYTES_MAX));
      } catch (error) {
        done(error as Error);
      }
    },
    handler: (request, reply) => answer(request, reply, contract, handler, parts.stored),
  });
}

async function answer(request: FastifyRequest, reply: FastifyReply, contract: RouteContract, handler: RouteHandler, stored: StoredExchange): Promise<unknown> {
  const { caller } = request;
  assert(caller !== undefined, 'the caller was identified before the body was read');
  const takesForm = contract.bodyKind === 'multipart';
  if (contract.bodyKind !== 'tensor' && takesForm !== request.isMultipart() && (takesForm || contract.body !== undefined)) {
    throw new RequestFault({ code: 'unsupported_media_type', message: `Unsupported content type. Send the body as '${takesForm ? 'multipart/form-data' : 'application/json'}'.` });
  }
  if (stored.takes(request, contract, caller)) {
    await stored.answer(request, reply, caller);
    return reply;
  }
  const body = contract.body === undefined || handler.readsBody ? undefined : parseWith(contract.body, readDocument(request.body).value);
  const query = contract.query === undefined ? undefined : parseWith(contract.query, plainQuery(request.query));
  const params = request.params as Readonly<Record<string, string>>;
  const value = await handler.handle({ requestId: request.id, principal: caller.principal, batchId: caller.batchId, params, query, body, request, reply });
  if (value === ANSWERED) return reply;
  return reply.code(contract.status).type('application/json; charset=utf-8').send(JSON.stringify(value));
}

function countAnswer(request: FastifyRequest, reply: FastifyReply, parts: RouteParts): void {
  const contract = request.routeOptions.config.contract;
  const route = contract?.path ?? 'unknown';
  parts.metrics.countRequest(route, reply.statusCode);
  // A request to a model writes its own line, with what it used.
  if ((contract?.callsModel === true || contract?.bodyKind === 'tensor') && reply.statusCode === 200) return;
  parts.logger.info({ requestId: request.id, method: request.method, route, status: reply.statusCode, durationMs: Math.round(reply.elapsedTime), organisationId: request.caller?.principal.organisationId }, 'request');
}
