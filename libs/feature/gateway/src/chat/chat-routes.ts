import { Inject, Injectable } from '@nestjs/common';
import { isTensorEngine } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { mayCallModel } from '@penstock/domain-access';
import { chooseEndpoint, type EndpointState } from '@penstock/domain-catalog';
import { checkChatRequest, contextFault } from '@penstock/domain-serving';
import type { UsageDraft } from '@penstock/domain-usage';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { readDocument } from '../http/read-body.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, onRoute, type DirectCall, type RouteGroup } from '../http/route-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { ChatExchange } from './chat-exchange.js';
import type { ChatJob, ChatParts } from './chat-parts.js';
import { CHAT_PARTS } from './chat-parts.js';
import { ClientAnswer } from './client-answer.js';
import { limitedRequest, withinContext } from './limited-request.js';
import { callerWords, PromptFacts } from './prompt-facts.js';
import { RequestTrace } from './request-trace.js';

/** Tenants whose salt is remembered. */
const CACHE_SALTS_MAX = 20_000;

/** `POST /v1/chat/completions`. */
@Injectable()
export class ChatRoutes implements RouteGroup {
  readonly handlers = [onRoute('POST /v1/chat/completions', (call) => this.complete(call), { readsBody: true, direct: (call) => this.complete(call) })];

  private readonly cacheSalts = new Map<string, string>();

  constructor(
    @Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts,
    @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews,
    @Inject(CHAT_PARTS) private readonly parts: ChatParts,
  ) {}

  private async complete(call: DirectCall): Promise<typeof ANSWERED> {
    const { watch, metrics, config, limits } = this.parts;
    if (watch.count >= config.REQUESTS_IN_FLIGHT_MAX) throw new RequestFault({ code: 'queue_full', message: 'This gateway works on as many requests as it can. Try again shortly.', retryAfterMs: 1_000 });
    const trace = new RequestTrace('chat', call.request.headers, { 'gen_ai.operation.name': 'chat', 'penstock.request.id': call.requestId });
    metrics.inFlight.inc();
    try {
      const job = this.prepare(call, trace.traceparent);
      const draft = draftOf(job);
      const reservation = await limits.reserve(limitedRequest(call, job));
      try {
        const exchange = new ChatExchange(this.parts, job, draft, reservation.watch(this.ports.usage.open(draft, trace.traceparent)), new ClientAnswer(call.reply, () => this.ports.clock.now()));
        await exchange.run();
      } finally {
        reservation.end();
      }
      trace.end();
      return ANSWERED;
    } catch (error) {
      trace.end(error);
      throw error;
    } finally {
      metrics.inFlight.dec();
    }
  }

  private cacheSaltOf(organisationId: string): string {
    let salt = this.cacheSalts.get(organisationId);
    if (salt !== undefined) return salt;
    salt = this.ports.keys.cacheSalt(organisationId);
    if (this.cacheSalts.size >= CACHE_SALTS_MAX) this.cacheSalts.clear();
    this.cacheSalts.set(organisationId, salt);
    return salt;
  }

  private prepare(call: DirectCall, traceparent: string | undefined): ChatJob {
    const document = readDocument(call.request.body);
    const checked = checkChatRequest(document);
    if (checked.kind === 'fault') throw new RequestFault(checked.fault);
    const { principal, requestId, batchId } = call;
    const words = callerWords(call.request.headers, document.value);
    const endpoint = chooseEndpoint(this.views.catalog.state(), checked.request.model, { ...words, organisationId: principal.organisationId, requestId });
    if (endpoint === undefined || !mayCallModel(principal, endpoint.name)) throw new RequestFault(modelNotFound(checked.request.model));
    if (isTensorEngine(endpoint.engine)) throw new RequestFault({ code: 'unsupported_value', message: `The model \`${endpoint.name}\` takes tensors and no messages. Call it at POST /v2/models/${encodeURIComponent(endpoint.name)}/infer.`, param: 'model' });
    const contextTokens = this.parts.limits.contextTokens(principal, endpoint.name, endpoint.serving.contextTokens, document.text.length);
    const fault = contextFault(checked.request, contextTokens);
    if (fault !== undefined) throw new RequestFault(fault);
    const cacheSalt = this.cacheSaltOf(principal.organisationId);
    return {
      requestId, principal, batchId, endpoint, document, request: withinContext(checked.request, contextTokens, endpoint.serving.contextTokens, document.text.length), traceparent,
      startedAtMs: this.ports.clock.now(), cacheSalt,
      prompt: new PromptFacts(document, 'messages', cacheSalt, words),
    };
  }
}

/** The same words whether there is no such model or the caller may not use it. */
export function modelNotFound(name: string): ApiFault {
  return { code: 'model_not_found', message: `The model \`${name}\` does not exist or you do not have access to it.` };
}

function draftOf({ requestId, principal, endpoint, batchId, request, startedAtMs }: ChatJob): UsageDraft {
  const { organisationId, projectId, keyId } = principal;
  const { endpointId, name, modelVersionId }: EndpointState = endpoint;
  return {
    requestId, organisationId, projectId, keyId, endpointId, modelName: name, modelVersionId, batchId, operation: 'chat', stream: request.stream === true,
    startedAt: new Date(startedAtMs).toISOString(), replicaId: null,
  };
}
