import type { Refusal } from '@penstock/kernel';
import type { AdmissionEffect } from './admission-effect.js';
import { addWaiter, queueVerdict, removeWaiter } from './admission-queue.js';
import { adapterAbsent, mayNotWait, queueFull, replacedByNewer, stillLoading } from './admission-refusals.js';
import { isCold, type AdmissionRequest, type AdmissionState, type Waiter } from './admission-state.js';
import { forgetLease } from './leases.js';
import { grantWaiting, tryGrant } from './grant.js';
import { dueAtMs } from './overdue.js';
import { DEFAULT_PRIORITY, rankOf } from './priority.js';

/**
 * Takes in one request: a free slot is granted at once, else the request waits in the bounded queue, else it is refused.
 * A request that waits already and asks again takes its own place over, at the end of the queue; the earlier one is refused.
 */
export function admit(state: AdmissionState, request: AdmissionRequest, nowMs: number): AdmissionEffect[] {
  const effects: AdmissionEffect[] = [];
  state.lastRequestAtMs = nowMs;
  const earlier = state.waiting.get(request.requestId);
  if (earlier !== undefined) refuseWaiter(state, earlier, replacedByNewer(), effects);
  grantWaiting(state, nowMs, effects);
  const waiter = waiterOf(state, request, nowMs);
  if (!tryGrant(state, waiter, nowMs, effects)) enqueue(state, waiter, nowMs, effects);
  return effects;
}

/** Takes a waiting request out. Gives back a slot that it was granted meanwhile, too. False when nothing was known of it. */
export function cancel(state: AdmissionState, requestId: string, nowMs: number): { readonly cancelled: boolean; readonly effects: AdmissionEffect[] } {
  const effects: AdmissionEffect[] = [];
  const waiter = state.waiting.get(requestId);
  if (waiter !== undefined) removeWaiter(state, waiter);
  const granted = [...state.leases.values()].filter((held) => held.requestId === requestId);
  for (const held of granted) forgetLease(state, held);
  if (granted.length > 0) grantWaiting(state, nowMs, effects);
  return { cancelled: waiter !== undefined || granted.length > 0, effects };
}

/** Refuses everybody who waits, for example because the endpoint was retired. */
export function refuseAllWaiting(state: AdmissionState, refusal: Refusal): AdmissionEffect[] {
  const effects: AdmissionEffect[] = [];
  for (const waiter of [...state.waiting.values()]) refuseWaiter(state, waiter, refusal, effects);
  return effects;
}

export function refuseWaiter(state: AdmissionState, waiter: Waiter, refusal: Refusal, effects: AdmissionEffect[]): void {
  removeWaiter(state, waiter);
  effects.push({ kind: 'refuse', requestId: waiter.requestId, leaseId: waiter.leaseId, refusal });
}

function waiterOf(state: AdmissionState, request: AdmissionRequest, nowMs: number): Waiter {
  const cold = isCold(state);
  // The time in which a new owner holds grants back is not the caller's.
  const startMs = Math.max(nowMs, state.grantsFromMs);
  return {
    ...request,
    enqueuedAtMs: nowMs,
    latestMs: startMs + request.waitMsMax,
    queueClockMs: cold ? null : startMs,
    metColdStart: cold,
    failedStartsBefore: state.startTrouble.failedStarts,
    rank: rankOf(request.priority ?? DEFAULT_PRIORITY),
    weight: request.weight ?? 1,
    workTokens: request.workTokens ?? 0,
    startTag: 0,
    sequence: 0,
  };
}

function enqueue(state: AdmissionState, waiter: Waiter, nowMs: number, effects: AdmissionEffect[]): void {
  const refusal = waitRefusal(state, waiter, nowMs);
  const verdict = refusal === undefined ? queueVerdict(state, waiter) : { kind: 'refused' as const, refusal };
  if (verdict.kind === 'refused') {
    effects.push({ kind: 'refuse', requestId: waiter.requestId, leaseId: waiter.leaseId, refusal: verdict.refusal });
  } else {
    if (verdict.kind === 'displace') refuseWaiter(state, verdict.waiter, queueFull(state), effects);
    addWaiter(state, waiter);
    state.lastQueuedAtMs = nowMs;
    if (state.loans.size > 0) effects.push({ kind: 'recall', endpointId: state.settings.endpointId });
    state.earliestDueMs = Math.min(state.earliestDueMs, dueAtMs(state, waiter));
  }
  if (isCold(state) && !state.wakeRequested) {
    // A request that may not wait still starts the endpoint, for those that come after it.
    state.wakeRequested = state.waiting.size > 0;
    effects.push({ kind: 'wake', endpointId: state.settings.endpointId, waiting: Math.max(1, state.waiting.size) });
  }
}

function waitRefusal(state: AdmissionState, waiter: Waiter, nowMs: number): Refusal | undefined {
  if (waiter.adapter !== undefined && !mayCome(state, waiter.adapter)) return adapterAbsent(waiter.adapter);
  if (dueAtMs(state, waiter) > nowMs) return undefined;
  return isCold(state) ? stillLoading() : mayNotWait(state);
}

/** Whether a wait may end with a replica that serves the adapter: one is there, or on its way. */
function mayCome(state: AdmissionState, adapter: string): boolean {
  return isCold(state) || state.startTrouble.isStarting || state.serving.some(({ replicaId }) => state.adapters.mayServe(replicaId, adapter));
}
