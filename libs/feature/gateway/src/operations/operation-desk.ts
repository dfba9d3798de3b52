import { Inject, Injectable } from '@nestjs/common';
import type { CalledEndpoint } from '@penstock/domain-catalog';
import { CHAT_PARTS, type ChatParts } from '../chat/chat-parts.js';
import { ClientAnswer } from '../chat/client-answer.js';
import { callerWords, prefixSalt, PromptFacts } from '../chat/prompt-facts.js';
import type { GatewayViews } from '../gateway-views.js';
import type { ANSWERED, DirectCall } from '../http/route-call.js';
import { noTokens } from '../limits/limited-call.js';
import type { TokenEstimate } from '../limits/request-limits.js';
import { GATEWAY_VIEWS } from '../tokens.js';
import { findTextModel } from '../frame/find-model.js';
import { ModelDesk } from '../frame/model-desk.js';
import type { ModelWork, UsageLedger, WorkStart } from '../frame/model-work.js';
import { nameCaller } from '../frame/openai-headers.js';
import { OperationExchange, type OperationJob } from './operation-exchange.js';
import type { Operation } from './operation.js';

/** What an operation is made from. */
export interface OperationContext {
  readonly endpoint: CalledEndpoint;
  readonly requestId: string;
  /** Unix seconds. */
  readonly created: number;
  /** What the caller may fill of the model's context, in tokens. */
  readonly contextTokens: number;
}

/** What a route knows of its operation before the model is found. */
export interface OperationAsk {
  /** For traces and logs, in the words of `gen_ai.operation.name` where it has one. */
  readonly name: string;
  /** As the caller named it. */
  readonly model: string;
  /** As it was sent; it may say who asks. */
  readonly body?: unknown;
  /** OpenAI's `service_tier`, where the route has it. */
  readonly serviceTier?: unknown;
  readonly make: (context: OperationContext) => Operation;
  /** Where the request has what the model reads, when that is not `input`. */
  readonly inputField?: string;
}

/** Carries out every kind of request to a model other than chats and tensors. */
@Injectable()
export class OperationDesk {
  constructor(
    @Inject(ModelDesk) private readonly desk: ModelDesk,
    @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews,
    @Inject(CHAT_PARTS) private readonly parts: ChatParts,
  ) {}

  /** Carries out what `make` gives for the endpoint that `model` names. Throws a {@link RequestFault} while nothing was sent. */
  serve(call: DirectCall, ask: OperationAsk): Promise<typeof ANSWERED> {
    return this.desk.serve(call, new OperationWork(ask, this.desk, this.views, this.parts));
  }
}

class OperationWork implements ModelWork<OperationJob> {
  readonly name: string;

  constructor(private readonly ask: OperationAsk, private readonly desk: ModelDesk, private readonly views: GatewayViews, private readonly parts: ChatParts) {
    this.name = ask.name;
  }

  prepare(call: DirectCall, { startedAtMs, traceparent }: WorkStart): OperationJob {
    nameCaller(call);
    const { principal, requestId, batchId } = call;
    const { name, model, body, serviceTier, make, inputField = 'input' } = this.ask;
    const words = callerWords(call.request.headers, body);
    const endpoint = findTextModel(this.views, model, call, words);
    const bodyBytes = Buffer.isBuffer(call.request.body) ? call.request.body.length : 0;
    const contextTokens = this.parts.limits.contextTokens(principal, endpoint, endpoint.serving.contextTokens, bodyBytes, inputField);
    const operation = make({ endpoint, requestId, created: Math.floor(startedAtMs / 1_000), contextTokens });
    const cacheSalt = this.desk.cacheSaltOf(principal.organisationId);
    return {
      requestId, principal, batchId, endpoint, startedAtMs, traceparent, name, operation, bodyBytes, metered: operation.metered, isStreamed: operation.isStreamed,
      priority: this.parts.limits.priority(call, endpoint, serviceTier), cacheSalt,
      prompt: operation.prompted === undefined ? undefined : new PromptFacts(operation.prompted.document, operation.prompted.member, prefixSalt(cacheSalt, endpoint.adapter), words),
    };
  }

  estimate({ operation, endpoint, bodyBytes }: OperationJob): TokenEstimate {
    return operation.metered === null ? noTokens : { bodyBytes, contextTokens: endpoint.serving.contextTokens, ...operation.asked };
  }

  carryOut(call: DirectCall, job: OperationJob, ledger: UsageLedger | undefined): Promise<void> {
    return new OperationExchange(this.parts, job, ledger, new ClientAnswer(call.reply, () => this.parts.clock.now())).run();
  }
}
