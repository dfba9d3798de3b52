import { scopeOf, type ApiFault, type RouteContract } from '@penstock/contract-http';
import type { Logger } from '@penstock/kernel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { GatewayConfig } from '../gateway-config.js';
import type { GatewayMetrics } from '../gateway-metrics.js';
import type { CallerCheck } from './caller.js';
import type { LoadGuard } from './load-guard.js';
import { pathsOf } from './path-table.js';
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
  readonly requestIdOf: (request: IncomingMessage) => string;
}

export interface DirectRoute {
  readonly contract: RouteContract;
  readonly serve: (call: DirectCall) => Promise<unknown>;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\b/;

/**
 * The routes that carry nearly all requests, taken before the framework sees them: the same checks in the same order, over
 * Node's own server. What is unusual (another content type, an encoding, an answer that is to be stored, a query) is left to the framework's route of the same path.
 */
export class DirectRoutes {
  private readonly byPath = new Map<string, DirectRoute>();

  constructor(private readonly parts: DirectParts, routes: readonly DirectRoute[]) {
    for (const route of routes) for (const path of pathsOf(route.contract)) this.byPath.set(path, route);
  }

  /** Puts these routes before the handler that the server has. */
  attach(server: Server): void {
    const [framework] = server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[];
    server.removeAllListeners('request');
    server.on('request', (request, response) => {
      if (!this.take(request, response)) framework?.call(server, request, response);
    });
  }

  /** False when the request is not one of these. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== 'POST') return false;
    const route = this.byPath.get(request.url ?? '');
    const { 'content-type': type, 'content-encoding': encoding, 'idempotency-key': idempotencyKey, prefer } = request.headers;
    if (route === undefined || type === undefined || encoding !== undefined || idempotencyKey !== undefined || prefer !== undefined || !JSON_TYPE.test(type)) return false;
    new DirectExchange(this.parts, route, request, response).begin();
    return true;
  }
}

class DirectExchange {
  readonly requestId: string;
  private readonly startedAtMs = performance.now();
  private readonly chunks: Buffer[] = [];
  private bytes = 0;
  private isOver = false;
  private ownHeaders: Readonly<Record<string, string>> = {};
  private organisationId: string | undefined;

  constructor(private readonly parts: DirectParts, private readonly route: DirectRoute, private readonly request: IncomingMessage, private readonly response: ServerResponse) {
    this.requestId = parts.requestIdOf(request);
  }

  begin(): void {
    const { parts, request } = this;
    try {
      if (parts.isDraining()) throw new RequestFault(shuttingDownFault);
      const caller = parts.callers.identify(request.headers, this.route.contract.access, scopeOf(this.route.contract));
      this.organisationId = caller.principal.organisationId;
      if (!parts.guard.mayTake()) throw new RequestFault(overloadedFault);
      if (Number(request.headers['content-length'] ?? 0) > parts.config.REQUEST_BYTES_MAX) throw new RequestFault(tooLargeFault);
      request.on('data', (chunk: Buffer) => this.collect(chunk));
      request.on('end', () => {
        if (!this.isOver) void this.serve(caller);
      });
      // A client that leaves in the middle of its body gets no answer.
      request.on('error', () => (this.isOver = true));
    } catch (error) {
      this.fail(error);
    }
  }

  private collect(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.isOver) return;
    if (this.bytes > this.parts.config.REQUEST_BYTES_MAX) this.fail(new RequestFault(tooLargeFault));
    else this.chunks.push(chunk);
  }

  private async serve({ principal, batchId }: ReturnType<CallerCheck['identify']>): Promise<void> {
    const { requestId, request, response } = this;
    const [first] = this.chunks;
    const body = this.chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.chunks, this.bytes);
    const ownHeaders: Record<string, string> = { 'x-request-id': requestId };
    this.ownHeaders = ownHeaders;
    try {
      await this.route.serve({ requestId, principal, batchId, request: { headers: request.headers, body }, reply: { raw: response, getHeaders: () => ownHeaders, header: (name, value) => (ownHeaders[name] = value), hijack: () => undefined } });
      this.count();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.isOver = true;
    const { response, requestId, parts } = this;
    const fault = faultOf(error);
    if (fault.code === 'internal_error') parts.logger.error({ err: error, requestId }, 'request failed');
    if (response.headersSent || response.destroyed) return;
    const { status, headers, body } = renderFault(fault, '', requestId);
    // The rest of a body that is too large is not waited for.
    response.writeHead(status, { ...this.ownHeaders, ...headers, 'content-length': String(Buffer.byteLength(body)), ...(status === 413 ? { connection: 'close' } : {}) }).end(body);
    this.count();
  }

  private count(): void {
    const { parts, route, response, requestId } = this;
    parts.metrics.countRequest(route.contract.path, response.statusCode);
    // A request to a model writes its own line, with what it used.
    if (response.statusCode === 200) return;
    parts.logger.info({ requestId, method: 'POST', route: route.contract.path, status: response.statusCode, durationMs: Math.round(performance.now() - this.startedAtMs), organisationId: this.organisationId }, 'request');
  }
}

const overloadedFault: ApiFault = { code: 'queue_full', message: 'This gateway is as busy as it may be. Try again shortly; another gateway may answer at once.', retryAfterMs: 1_000 };
const tooLargeFault: ApiFault = { code: 'body_too_large', message: 'The body of the request is larger than this route takes.' };
