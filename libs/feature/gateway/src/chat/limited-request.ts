import type { ChatCompletionRequest } from '@penstock/contract-http';
import { estimatePromptTokens } from '@penstock/domain-serving';
import type { RouteCall } from '../http/route-call.js';
import { limitedCall } from '../limits/limited-call.js';
import type { LimitedRequest } from '../limits/request-limits.js';
import type { ChatJob } from './chat-parts.js';

/** What a chat request asks of the limits it is under. */
export function limitedRequest(call: RouteCall, { endpoint, document, request }: ChatJob): LimitedRequest {
  const choices = request.n ?? 1;
  const answerTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  return limitedCall(call, endpoint.name, {
    bodyBytes: Buffer.byteLength(document.text), completionTokensMax: answerTokens === null ? null : answerTokens * choices, contextTokens: endpoint.serving.contextTokens, choices,
  });
}

/** A caller who may fill only a part of the context, and names no limit for the answer, gets the rest of that part. */
export function withinContext(request: ChatCompletionRequest, contextTokens: number, endpointTokens: number, bodyBytes: number): ChatCompletionRequest {
  if (contextTokens >= endpointTokens || (request.max_completion_tokens ?? request.max_tokens ?? null) !== null) return request;
  return { ...request, max_completion_tokens: Math.max(1, contextTokens - estimatePromptTokens(bodyBytes)) };
}
