import type { ApiFault } from '@penstock/contract-http';
import type { ReplicaOutcome } from '@penstock/domain-routing';
import type { EngineFault } from '@penstock/domain-serving';
import { statusOf } from '../chat/client-answer.js';

/** An answer that does not come in a stream shows no sign of life until it is whole. */
export const WHOLE_ANSWER_TIMEOUT_MS = 600_000;
/** Assumed of an answer without a limit, for admission alone. In tokens. */
export const ANSWER_TOKENS_ASSUMED = 512;
/** As proxies log it: the client closed its connection. */
export const CLIENT_GONE_STATUS = 499;

export const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'The gateway stopped before the answer was complete. Send the request again.', retryAfterMs: 500 };

/** The engine's own words may name the model as only we know it: `inner` becomes `outer`. */
export function publicFault({ code, message, param, retryElsewhere }: EngineFault, inner: string | undefined, outer: string): ApiFault {
  const words = inner === undefined || inner === '' ? message : message.replaceAll(inner, outer);
  return { code, message: words, ...(param === null ? {} : { param }), ...(retryElsewhere || code === 'replica_failed' ? { retryAfterMs: 1_000 } : {}) };
}

/** What the router judges the replica by: a request that is at fault itself, or a model that fails on its input, is no failure of the replica. */
export function leaseOutcome(outcome: { readonly kind: 'completed' | 'answer' | 'aborted' } | { readonly kind: 'failed'; readonly fault: EngineFault }): ReplicaOutcome {
  if (outcome.kind === 'aborted') return 'aborted';
  if (outcome.kind !== 'failed' || outcome.fault.code === 'inference_failed') return 'ok';
  if (outcome.fault.code === 'engine_timeout') return 'engine-timed-out';
  return statusOf(outcome.fault) < 500 ? 'ok' : 'engine-failed';
}
