import { scopeOf, type ApiFault, type KeyScope, type RouteContract } from '@penstock/contract-http';
import type { Logger } from '@penstock/kernel';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { GatewayConfig } from '../gateway-config.js';
import type { GatewayMetrics } from '../gateway-metrics.js';
import type { Caller, CallerCheck } from './caller.js';
import { overloaded, type LoadGuard } from './load-guard.js';
import { pathsOf } from './path-table.js';
import type { RawAnswer } from './raw-answer.js';
import { shuttingDownFault } from './register-routes.js';
import { faultOf, RequestFault } from './request-fault.js';
import type { DirectCall } from './route-call.js';
import { renderFault } from './send-fault.js';

export interface DirectParts {
  readonly config: GatewayConfig;
  readonly callers: CallerCheck;
  readonly metrics: GatewayMetrics;
  readonly logger: Logger;
  readonly guard: LoadGuard;
  readonly isDraining: () => boolean;
  readonly requestIdOf: (headers: IncomingHttpHeaders) => string;
}

export interface DirectRoute {
  readonly contract: RouteContract;
  readonly serve: (call: DirectCall) => Promise<unknown>;
}

/** A route with what each of its requests needs. */
export interface OpenRoute extends DirectRoute {
  readonly scope: KeyScope;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/;

/**
 * The routes that carry nearly all requests, taken before the framework sees them: the same checks in the same order, over
 * Node's own server or over connections read here. What is unusual (another content type, an encoding, an answer that is to be stored, a page of another origin, a query) is left to the framework's route of the same path.
 */
export class DirectRoutes {
  private readonly byPath = new Map<string, OpenRoute>();

  constructor(private readonly parts: DirectParts, routes: readonly DirectRoute[]) {
    for (const route of routes) for (const path of pathsOf(route.contract)) this.byPath.set(path, { ...route, scope: scopeOf(route.contract) });
  }

  /** Puts these routes before the handler that the server has. */
  attach(server: Server): void {
    const [framework] = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
    server.removeAllListeners('request');
    server.on('request', (request, response) => {
      if (!this.take(request, response)) framework?.call(server, request, response);
    });
  }

  /** The route of a POST to `path`; undefined when the framework has to look at it. */
  routeOf(path: string, headers: IncomingHttpHeaders): OpenRoute | undefined {
    const route = this.byPath.get(path);
    const { 'content-type': type, 'content-encoding': encoding, 'idempotency-key': idempotencyKey, prefer, origin } = headers;
    if (route === undefined || type === undefined || encoding !== undefined || idempotencyKey !== undefined || prefer !== undefined || origin !== undefined || !JSON_TYPE.test(type)) return undefined;
    return route;
  }

  open(route: OpenRoute, headers: IncomingHttpHeaders, answer: RawAnswer): DirectExchange {
    return new DirectExchange(this.parts, route, headers, answer);
  }

  /** False when the request is not one of these. */
  private take(request: IncomingMessage, response: ServerResponse): boolean {
    const route = request.method === 'POST' ? this.routeOf(request.url ?? '', request.headers) : undefined;
    if (route === undefined) return false;
    const exchange = this.open(route, request.headers, response);
    exchange.begin(Number(request.headers['content-length'] ?? 0));
    request.on('data', (chunk: Buffer) => exchange.collect(chunk));
    request.on('end', () => exchange.complete());
    request.on('error', () => exchange.abandon());
    return true;
  }
}

/** One request: its checks, its body, and its answer where it fails. */
export class DirectExchange {
  readonly requestId: string;
  private readonly startedAtMs = performance.now();
  private caller: Caller | undefined;
  private body: Buffer | undefined;
  private chunks: Buffer[] | undefined;
  private bytes = 0;
  private isOver = false;
  private isTurnedAway = false;
  private readonly ownHeaders: Record<string, string>;

  constructor(private readonly parts: DirectParts, private readonly route: OpenRoute, private readonly headers: IncomingHttpHeaders, private readonly answer: RawAnswer) {
    this.requestId = parts.requestIdOf(headers);
    this.ownHeaders = { 'x-request-id': this.requestId };
  }

  /** Looks at everything that can be judged without the body, of which `contentLength` bytes are to come. */
  begin(contentLength: number): void {
    const { parts, route } = this;
    try {
      if (parts.isDraining()) throw new RequestFault(shuttingDownFault);
      this.caller = parts.callers.identify(this.headers, route.contract.access, route.scope);
      if (!parts.guard.mayTake()) throw overloaded;
      if (contentLength > parts.config.REQUEST_BYTES_MAX) throw new RequestFault(tooLargeFault);
    } catch (error) {
      this.fail(error);
    }
  }

  collect(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.isOver) return;
    if (this.bytes > this.parts.config.REQUEST_BYTES_MAX) this.fail(new RequestFault(tooLargeFault));
    else if (this.body === undefined) this.body = chunk;
    else (this.chunks ??= [this.body]).push(chunk);
  }

  /** The body is here. */
  complete(): void {
    if (!this.isOver) void this.serve();
  }

  /** A client that leaves in the middle of its body gets no answer. */
  abandon(): void {
    this.isOver = true;
  }

  private async serve(): Promise<void> {
    const { requestId, headers, answer, caller, ownHeaders } = this;
    if (caller === undefined) return;
    const { principal, batchId } = caller;
    const body = this.chunks === undefined ? this.body ?? noBytes : Buffer.concat(this.chunks, this.bytes);
    this.body = this.chunks = undefined;
    try {
      await this.route.serve({ requestId, principal, batchId, request: { headers, body }, reply: { raw: answer, getHeaders: () => ownHeaders, header: (name, value) => (ownHeaders[name] = value), hijack: () => undefined } });
      this.count();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.isOver = true;
    this.isTurnedAway = error === overloaded;
    const { answer, requestId, parts } = this;
    const fault = faultOf(error);
    if (fault.code === 'internal_error') parts.logger.error({ err: error, requestId }, 'request failed');
    if (answer.headersSent || answer.destroyed) return;
    const { status, headers, body } = renderFault(fault, '', requestId);
    // The rest of a body that is too large is not waited for.
    answer.writeHead(status, { ...this.ownHeaders, ...headers, 'content-length': String(Buffer.byteLength(body)), ...(status === 413 ? { connection: 'close' } : {}) });
    answer.end(body, 'utf8');
    this.count();
  }

  private count(): void {
    const { parts, route, answer, requestId } = this;
    parts.metrics.countRequest(route.contract.path, answer.statusCode);
    // A request to a model writes its own line, with what it used; the guard has one for all that were turned away.
    if (answer.statusCode === 200 || this.isTurnedAway) return;
    parts.logger.info({ requestId, method: 'POST', route: route.contract.path, status: answer.statusCode, durationMs: Math.round(performance.now() - this.startedAtMs), organisationId: this.caller?.principal.organisationId }, 'request');
  }
}

const noBytes = Buffer.alloc(0);
const tooLargeFault: ApiFault = { code: 'body_too_large', message: 'The body of the request is larger than this route takes.' };
