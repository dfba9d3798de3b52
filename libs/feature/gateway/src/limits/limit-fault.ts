import type { LimitsSetV1 } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import type { QuotaSlice } from '@penstock/domain-access';
import { formatDuration } from './rate-headers.js';
import type { QuotaAsk } from './quota-desk.js';

/** An ask with what people call it. */
export interface NamedAsk extends QuotaAsk {
  readonly unit: 'requests' | 'tokens' | 'concurrent requests';
  readonly set: LimitsSetV1;
}

const RETRY_AFTER_MS = 1_000;

/** What the limits are called where they are set. */
export const NAMES = { requests: 'requests_per_minute', tokens: 'tokens_per_minute', 'concurrent requests': 'concurrency' } as const;

/** Which limit was met, how much of it is used, and when to come back, in OpenAI's words. */
export function limitFault(ask: NamedAsk | undefined, slice: QuotaSlice | undefined): ApiFault {
  if (ask === undefined || slice === undefined) return { code: 'rate_limit_exceeded', message: 'A rate limit was reached. Please try again in 1s.', retryAfterMs: RETRY_AFTER_MS };
  const { limit, amount, unit, set } = ask;
  const retryAfterMs = Math.max(1, Math.ceil(slice.retryAfterMs || RETRY_AFTER_MS));
  const used = Math.max(0, limit - slice.remaining);
  const what = unit === 'concurrent requests' ? 'concurrent requests' : `${unit} per minute`;
  return {
    code: 'rate_limit_exceeded', type: unit === 'tokens' ? 'tokens' : 'requests', retryAfterMs,
    message: `Rate limit reached ${forWhom(set)} on ${what}: Limit ${limit}, Used ${used}, Requested ${amount}. Please try again in ${formatDuration(retryAfterMs)}.`,
    limit: { name: NAMES[unit], scope: scopeOf(set), limit, used, requested: amount },
  };
}

/** A request that would not fit into an unused limit: waiting does not help. */
export function tooLargeFault(set: LimitsSetV1, limit: number, asked: number): ApiFault {
  return {
    code: 'rate_limit_exceeded', type: 'tokens', retryable: false,
    message: `Request too large ${forWhom(set)} on tokens per minute: Limit ${limit}, Requested ${asked}. Shorten the prompt, lower the token limit of the answer, or have the limit raised.`,
    limit: { name: NAMES.tokens, scope: scopeOf(set), limit, used: 0, requested: asked },
  };
}

function forWhom(set: LimitsSetV1): string {
  return `for ${scopeOf(set)}`;
}

function scopeOf({ subject, subjectId, model }: LimitsSetV1): string {
  return `${model === null ? 'all models' : model} in ${subject} ${subjectId}`;
}
