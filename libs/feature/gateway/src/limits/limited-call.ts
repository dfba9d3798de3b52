import type { RouteCall } from '../http/route-call.js';
import type { LimitedRequest, TokenEstimate } from './request-limits.js';

/** A call of a route as the limits see it. */
export function limitedCall(call: RouteCall, modelName: string, estimate: TokenEstimate): LimitedRequest {
  const gone = new AbortController();
  call.reply.raw.once('close', () => gone.abort());
  return { principal: call.principal, isBatch: call.batchId !== null, modelName, estimate, setHeader: (name, value) => void call.reply.header(name, value), signal: gone.signal };
}

/** What takes no tokens is limited by requests alone. */
export const noTokens: TokenEstimate = { bodyBytes: 0, completionTokensMax: 0, contextTokens: 0, choices: 1 };
