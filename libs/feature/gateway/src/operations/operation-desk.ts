import { Inject, Injectable } from '@nestjs/common';
import { isTensorEngine } from '@penstock/contract-events';
import { mayCallModel } from '@penstock/domain-access';
import { chooseEndpoint, type EndpointState } from '@penstock/domain-catalog';
import type { UsageDraft } from '@penstock/domain-usage';
import { CHAT_PARTS, type ChatParts } from '../chat/chat-parts.js';
import { modelNotFound } from '../chat/chat-routes.js';
import { ClientAnswer } from '../chat/client-answer.js';
import { callerWords, PromptFacts } from '../chat/prompt-facts.js';
import { RequestTrace } from '../chat/request-trace.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWERED, type DirectCall } from '../http/route-call.js';
import { limitedCall, noTokens } from '../limits/limited-call.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS } from '../tokens.js';
import { OperationExchange, type OperationJob } from './operation-exchange.js';
import type { Operation } from './operation.js';

/** What an operation is made from. */
export interface OperationContext {
  readonly endpoint: EndpointState;
  readonly requestId: string;
  /** Unix seconds. */
  readonly created: number;
  /** What the caller may fill of the model's context, in tokens. */
  readonly contextTokens: number;
}

/** Where every operation begins: the model that it names, room in this gateway, a trace, and a line in the outbox of usage. */
@Injectable()
export class OperationDesk {
  constructor(
    @Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts,
    @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews,
    @Inject(CHAT_PARTS) private readonly parts: ChatParts,
  ) {}

  /** Carries out what `make` gives for the endpoint that `model` names; `body` may say who asks. Throws a {@link RequestFault} while nothing was sent. */
  async serve(call: DirectCall, model: string, make: (context: OperationContext) => Operation | Promise<Operation>, body?: unknown): Promise<typeof ANSWERED> {
    const { watch, metrics, config, clock, limits } = this.parts;
    if (watch.count >= config.REQUESTS_IN_FLIGHT_MAX) throw new RequestFault({ code: 'queue_full', message: 'This gateway works on as many requests as it can. Try again shortly.', retryAfterMs: 1_000 });
    const startedAtMs = clock.now();
    const { principal, requestId } = call;
    const words = callerWords(call.request.headers, body);
    const endpoint = chooseEndpoint(this.views.catalog.state(), model, { ...words, organisationId: principal.organisationId, requestId });
    if (endpoint === undefined || !mayCallModel(principal, endpoint.name)) throw new RequestFault(modelNotFound(model));
    if (isTensorEngine(endpoint.engine)) throw new RequestFault({ code: 'unsupported_operation', message: `The model \`${endpoint.name}\` takes tensors and no text. Call it at POST /v2/models/${encodeURIComponent(endpoint.name)}/infer.`, param: 'model' });
    const bodyBytes = Buffer.isBuffer(call.request.body) ? call.request.body.length : 0;
    const contextTokens = limits.contextTokens(principal, endpoint.name, endpoint.serving.contextTokens, bodyBytes);
    const operation = await make({ endpoint, requestId, created: Math.floor(startedAtMs / 1_000), contextTokens });
    const trace = new RequestTrace(operation.name, call.request.headers, { 'gen_ai.operation.name': operation.name, 'penstock.request.id': requestId });
    metrics.inFlight.inc();
    try {
      const cacheSalt = this.ports.keys.cacheSalt(principal.organisationId);
      const job: OperationJob = { requestId, principal, endpoint, startedAtMs, traceparent: trace.traceparent, cacheSalt, prompt: operation.prompted === undefined ? undefined : new PromptFacts(operation.prompted.document, operation.prompted.member, cacheSalt, words) };
      const draft = operation.metered === null ? undefined : draftOf(call, job, operation, operation.metered);
      const estimate = operation.metered === null ? noTokens : { bodyBytes, contextTokens: endpoint.serving.contextTokens, ...operation.asked };
      const reservation = await limits.reserve(limitedCall(call, endpoint.name, estimate));
      try {
        const ledger = draft === undefined ? undefined : { draft, usage: reservation.watch(this.ports.usage.open(draft, trace.traceparent)) };
        await new OperationExchange(this.parts, job, operation, ledger, new ClientAnswer(call.reply, () => clock.now())).run();
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
}

function draftOf({ batchId }: DirectCall, { requestId, principal, endpoint, startedAtMs }: OperationJob, { isStreamed }: Operation, operation: UsageDraft['operation']): UsageDraft {
  const { organisationId, projectId, keyId } = principal;
  const { endpointId, name, modelVersionId } = endpoint;
  return {
    requestId, organisationId, projectId, keyId, endpointId, modelName: name, modelVersionId, batchId, operation, stream: isStreamed,
    startedAt: new Date(startedAtMs).toISOString(), replicaId: null,
  };
}
