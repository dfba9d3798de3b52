import type { LimitedModel } from '@penstock/domain-access';
import type { DirectCall } from '../http/route-call.js';
import type { LimitedRequest, TokenEstimate } from './request-limits.js';

/** A call of a route as the limits see it. */
export function limitedCall(call: DirectCall, model: LimitedModel, estimate: TokenEstimate): LimitedRequest {
  return {
    principal: call.principal, isBatch: call.batchId !== null, model, estimate, setHeader: (name, value) => void call.reply.header(name, value),
    // Most calls are under no limit, and nobody asks.
    signal: () => {
      const gone = new AbortController();
      if (call.reply.raw.destroyed) gone.abort();
      else call.reply.raw.once('close', () => gone.abort());
      return gone.signal;
    },
  };
}

/** What takes no tokens is limited by requests alone. */
export const noTokens: TokenEstimate = { bodyBytes: 0, completionTokensMax: 0, contextTokens: 0, choices: 1 };
