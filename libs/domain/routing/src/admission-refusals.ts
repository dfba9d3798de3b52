import type { LimitMet, Refusal } from '@penstock/kernel';
import { runningOf, slotsOf, type AdmissionState } from './admission-state.js';
import { estimateRetryAfterMs } from './estimate-retry-after.js';

/** Hint for a caller of an endpoint that is still starting. */
export const COLD_RETRY_AFTER_MS = 5_000;
/** Hint for a caller of an endpoint that cannot start now. */
export const NO_CAPACITY_RETRY_AFTER_MS = 15_000;

/** Far beyond what is refused within one wait. */
const REFUSALS_COUNTED = 1_000_000;

/** When a slot or a place in the queue is likely to be free. */
export function retryAfterMs(state: AdmissionState): number {
  const hintMs = estimateRetryAfterMs({ waiting: state.waiting.size, slots: slotsOf(state), meanServiceMs: state.meanServiceMs }, state.refusals);
  state.refusals = (state.refusals + 1) % REFUSALS_COUNTED;
  return hintMs;
}

export function queueFull(state: AdmissionState): Refusal {
  return {
    code: 'queue_full',
    message: `All slots of this model are busy and its queue of ${state.settings.queueMax} is full. Retry later, or raise the endpoint's replicas or queue_max.`,
    retryAfterMs: retryAfterMs(state),
    limit: { name: 'queue', scope: `requests that wait for the model; ${runningOf(state)} of its ${slotsOf(state)} slots are taken`, limit: state.settings.queueMax, used: state.waiting.size },
  };
}

export function tenantShareFull(state: AdmissionState, mine: number): Refusal {
  return {
    code: 'queue_full',
    message: 'Others wait for this model too, and your organisation has its share of the queue. Retry later, or send fewer requests at once.',
    retryAfterMs: retryAfterMs(state),
    limit: { name: 'queue_share', scope: 'requests of your organisation that wait for the model while others wait too', limit: Math.ceil(state.settings.queueMax / 2), used: mine },
  };
}

export function mayNotWait(state: AdmissionState): Refusal {
  return { code: 'queue_full', message: 'All slots of this model are busy, and the request may not wait. Retry later.', retryAfterMs: retryAfterMs(state), limit: slotsTaken(state) };
}

export function queueTimeout(state: AdmissionState, waitedMs: number): Refusal {
  return { code: 'queue_timeout', message: `No slot of this model was free within ${Math.round(waitedMs)} ms. Retry later, or raise the endpoint's replicas.`, retryAfterMs: retryAfterMs(state), limit: slotsTaken(state) };
}

function slotsTaken(state: AdmissionState): LimitMet {
  return { name: 'slots', scope: `requests that the replicas of the model work on at once; ${state.waiting.size} wait`, limit: slotsOf(state), used: runningOf(state) };
}

export function stillLoading(): Refusal {
  return { code: 'model_loading', message: 'The model is starting and is not ready yet. Retry; the start goes on.', retryAfterMs: COLD_RETRY_AFTER_MS };
}

export function adapterAbsent(adapter: string): Refusal {
  return { code: 'model_loading', message: `No replica of this model serves the adapter ${adapter}: an engine has the adapters that it was started with. Start its replicas anew, or retry once that was done.`, retryAfterMs: NO_CAPACITY_RETRY_AFTER_MS };
}

export function everyReplicaFailed(): Refusal {
  return { code: 'replica_failed', message: 'Every ready replica of this model failed this request. Retry; if it goes on, look at the replicas of the endpoint.', retryAfterMs: 1_000 };
}

export function noCapacity(reason: string): Refusal {
  return { code: 'no_capacity', message: `The model cannot start now: ${reason}. It is tried again on its own; retry later.`, retryAfterMs: NO_CAPACITY_RETRY_AFTER_MS };
}

export function replacedByNewer(): Refusal {
  return { code: 'conflict', message: 'The same request asked again; the newer one took its place in the queue.' };
}
