import { Inject, Injectable } from '@nestjs/common';
import { checkChatRequest, contextFault } from '@penstock/domain-serving';
import { assert } from '@penstock/kernel';
import type { GatewayViews } from '../gateway-views.js';
import { readDocument } from '../http/read-body.js';
import { RequestFault } from '../http/request-fault.js';
import { onRoute, type DirectCall, type RouteGroup } from '../http/route-call.js';
import type { TokenEstimate } from '../limits/request-limits.js';
import { GATEWAY_VIEWS } from '../tokens.js';
import { findTextModel } from '../frame/find-model.js';
import { ModelDesk } from '../frame/model-desk.js';
import type { ModelWork, UsageLedger, WorkStart } from '../frame/model-work.js';
import { nameCaller } from '../frame/openai-headers.js';
import { ChatExchange } from './chat-exchange.js';
import { CHAT_PARTS, type ChatJob, type ChatParts } from './chat-parts.js';
import { ClientAnswer } from './client-answer.js';
import { callerWords, prefixSalt, PromptFacts } from './prompt-facts.js';
import { tokensAsked, withinContext } from './chat-tokens.js';

/** `POST /v1/chat/completions`. */
@Injectable()
export class ChatRoutes implements RouteGroup, ModelWork<ChatJob> {
  readonly name = 'chat';
  readonly handlers = [onRoute('POST /v1/chat/completions', (call) => this.desk.serve(call, this), { readsBody: true, direct: (call) => this.desk.serve(call, this) })];

  constructor(
    @Inject(ModelDesk) private readonly desk: ModelDesk,
    @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews,
    @Inject(CHAT_PARTS) private readonly parts: ChatParts,
  ) {}

  prepare(call: DirectCall, { startedAtMs, traceparent }: WorkStart): ChatJob {
    nameCaller(call);
    const document = readDocument(call.request.body);
    const checked = checkChatRequest(document);
    if (checked.kind === 'fault') throw new RequestFault(checked.fault);
    const { principal, requestId, batchId } = call;
    const { limits } = this.parts;
    const words = callerWords(call.request.headers, document.value);
    const endpoint = findTextModel(this.views, checked.request.model, call, words);
    const contextTokens = limits.contextTokens(principal, endpoint, endpoint.serving.contextTokens, document.text.length);
    const fault = contextFault(checked.request, contextTokens);
    if (fault !== undefined) throw new RequestFault(fault);
    const request = withinContext(checked.request, contextTokens, endpoint.serving.contextTokens, document.text.length);
    const cacheSalt = this.desk.cacheSaltOf(principal.organisationId);
    return {
      requestId, principal, batchId, endpoint, document, request, startedAtMs, traceparent, metered: 'chat', isStreamed: request.stream === true,
      priority: limits.priority(call, endpoint, request.service_tier), cacheSalt, prompt: new PromptFacts(document, 'messages', prefixSalt(cacheSalt, endpoint.adapter), words),
    };
  }

  estimate(job: ChatJob): TokenEstimate {
    return tokensAsked(job);
  }

  carryOut(call: DirectCall, job: ChatJob, ledger: UsageLedger | undefined): Promise<void> {
    assert(ledger !== undefined, 'a chat is metered');
    return new ChatExchange(this.parts, job, ledger, new ClientAnswer(call.reply, () => this.parts.clock.now())).run();
  }
}
