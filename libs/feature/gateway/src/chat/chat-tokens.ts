import type { ChatCompletionRequest } from '@penstock/contract-http';
import { estimatePromptTokens } from '@penstock/domain-serving';
import type { TokenEstimate } from '../limits/request-limits.js';
import type { ChatJob } from './chat-parts.js';

/** What a chat asks of the limits it is under. */
export function tokensAsked({ endpoint, document, request }: ChatJob): TokenEstimate {
  const choices = request.n ?? 1;
  const answerTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  return { bodyBytes: document.isAscii ? document.text.length : Buffer.byteLength(document.text), completionTokensMax: answerTokens === null ? null : answerTokens * choices, contextTokens: endpoint.serving.contextTokens, choices };
}

/** A caller who may fill only a part of the context, and names no limit for the answer, gets the rest of that part. */
export function withinContext(request: ChatCompletionRequest, contextTokens: number, endpointTokens: number, bodyBytes: number): ChatCompletionRequest {
  if (contextTokens >= endpointTokens || (request.max_completion_tokens ?? request.max_tokens ?? null) !== null) return request;
  return { ...request, max_completion_tokens: Math.max(1, contextTokens - estimatePromptTokens(bodyBytes)) };
}
