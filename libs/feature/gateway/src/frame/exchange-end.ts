import type { Lease } from '@penstock/contract-commands';
import type { ApiFault } from '@penstock/contract-http';
import { answerLimitsOf, splitAdapterName, type AnswerLimits, type CalledEndpoint, type EndpointState } from '@penstock/domain-catalog';
import type { ReplicaOutcome } from '@penstock/domain-routing';
import type { EngineFault } from '@penstock/domain-serving';
import { statusOf } from '../chat/client-answer.js';
import type { GatewayConfig } from '../gateway-config.js';

/** Assumed of an answer without a limit, for admission alone. In tokens. */
export const ANSWER_TOKENS_ASSUMED = 512;
/** As proxies log it: the client closed its connection. */
export const CLIENT_GONE_STATUS = 499;

export const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'The gateway stopped before the answer was complete. Send the request again.', retryAfterMs: 500 };

/** The time limits of a request to the endpoint. */
export function limitsOf({ FIRST_TOKEN_TIMEOUT_MS, CHUNK_GAP_TIMEOUT_MS, TOTAL_TIMEOUT_MS }: GatewayConfig, endpoint: EndpointState): AnswerLimits {
  return answerLimitsOf(endpoint, { firstTokenMs: FIRST_TOKEN_TIMEOUT_MS, chunkGapMs: CHUNK_GAP_TIMEOUT_MS, totalMs: TOTAL_TIMEOUT_MS });
}

/** Another replica would take as long, and so would the same request sent again. */
export function totalTimeoutFault(totalMs: number): EngineFault {
  return { code: 'total_timeout', message: `The answer was not complete within the ${totalMs / 1_000} s that it may take. Ask for fewer tokens, or have the endpoint's total_timeout_ms raised.`, param: null, retryElsewhere: false };
}

/** The engine's own words may name the model as only we know it: `inner` becomes `outer`. */
export function publicFault({ code, message, param, retryElsewhere }: EngineFault, inner: string | undefined, outer: string): ApiFault {
  const words = inner === undefined || inner === '' ? message : message.replaceAll(inner, outer);
  return { code, message: words, ...(param === null ? {} : { param }), ...(retryElsewhere || code === 'replica_failed' ? { retryAfterMs: 1_000 } : {}) };
}

/** What the engine knows the model by that a request named: its base model, or the adapter. */
export function servedModelOf({ servedModel }: Pick<Lease, 'servedModel'>, { adapter }: Pick<CalledEndpoint, 'adapter'>): string {
  return adapter ?? servedModel;
}

/** As {@link publicFault}, for a model of text. An adapter's name is put right only in quotes: it may be a word of the sentence. */
export function textFault(fault: EngineFault, lease: Pick<Lease, 'servedModel'> | undefined, { name, adapter }: Pick<CalledEndpoint, 'name' | 'adapter'>): ApiFault {
  const base = adapter === undefined ? name : splitAdapterName(name)?.base ?? name;
  const said = publicFault(fault, lease?.servedModel, base);
  return adapter === undefined ? said : { ...said, message: said.message.replaceAll(`\`${adapter}\``, `\`${name}\``) };
}

/** What the router judges the replica by: a request that is at fault itself, or a model that fails on its input, is no failure of the replica. */
export function leaseOutcome(outcome: { readonly kind: 'completed' | 'answer' | 'aborted' } | { readonly kind: 'failed'; readonly fault: EngineFault }): ReplicaOutcome {
  if (outcome.kind === 'aborted') return 'aborted';
  if (outcome.kind !== 'failed' || outcome.fault.code === 'inference_failed') return 'ok';
  if (outcome.fault.code === 'engine_timeout') return 'engine-timed-out';
  // An engine that goes on and on is not ill.
  if (outcome.fault.code === 'total_timeout') return 'aborted';
  return statusOf(outcome.fault) < 500 ? 'ok' : 'engine-failed';
}
