import type { Principal } from '@penstock/domain-access';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingHttpHeaders } from 'node:http';
import type { RawAnswer } from './raw-answer.js';

/** One request to one route, checked against the route's contract. */
export interface RouteCall<Query = unknown, Body = unknown> {
  readonly requestId: string;
  readonly principal: Principal;
  /** Set when the batch service calls for a tenant. */
  readonly batchId: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Where an answer goes that its handler writes by itself. A reply of the framework is one. */
export interface AnswerTarget {
  readonly raw: RawAnswer;
  /** What every answer carries. */
  getHeaders(): object;
  header(name: string, value: string): unknown;
  /** From here on nobody else writes. */
  hijack(): unknown;
}

/** A request with a JSON body to a route that writes its own answer; a {@link RouteCall} is one, too. */
export interface DirectCall extends Pick<RouteCall, 'requestId' | 'principal' | 'batchId'> {
  readonly request: { readonly headers: IncomingHttpHeaders; readonly body: unknown };
  readonly reply: AnswerTarget;
}

/** Set as `answered` by a handler that wrote the answer itself. */
export const ANSWERED = Symbol('answered');

export interface RouteHandler {
  /** `GET /v1/models`, as in the contract. */
  readonly route: string;
  /** The handler reads the body itself. */
  readonly readsBody: boolean;
  /** Serves the route without the framework, where that matters. Throws what `handle` throws. */
  readonly direct?: ((call: DirectCall) => Promise<unknown>) | undefined;
  handle(call: RouteCall): Promise<unknown>;
}

/** A group of routes, held by the container. */
export interface RouteGroup {
  readonly handlers: readonly RouteHandler[];
}

/** `Query` and `Body` are what the contract's schemas give. The value becomes the answer. */
export function onRoute<Query = unknown, Body = unknown>(route: string, handle: (call: RouteCall<Query, Body>) => Promise<unknown>, options: { readonly readsBody?: boolean; readonly direct?: (call: DirectCall) => Promise<unknown> } = {}): RouteHandler {
  return { route, readsBody: options.readsBody ?? false, direct: options.direct, handle: (call) => handle(call as RouteCall<Query, Body>) };
}
