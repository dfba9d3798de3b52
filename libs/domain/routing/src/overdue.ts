import type { Refusal } from '@penstock/kernel';
import { everyReplicaFailed, noCapacity, queueTimeout, stillLoading } from './admission-refusals.js';
import { isCold, type AdmissionState, type Waiter } from './admission-state.js';
import { coldStartVerdict } from './cold-start-verdict.js';

/** A request that all ready replicas failed waits this long for another one. */
export const EXCLUDED_WAIT_MS_MAX = 5_000;

/** When a waiting request is to be refused, in milliseconds since the epoch. */
export function dueAtMs(state: AdmissionState, waiter: Waiter): number {
  const queueEndMs = waiter.queueClockMs === null ? Infinity : waiter.queueClockMs + state.settings.queueWaitMsMax;
  const excludedEndMs = failedEverywhere(state, waiter) ? waiter.enqueuedAtMs + EXCLUDED_WAIT_MS_MAX : Infinity;
  return Math.min(waiter.latestMs, queueEndMs, excludedEndMs);
}

/** Why a waiting request is to be refused now; undefined while it may go on waiting. */
export function overdueRefusal(state: AdmissionState, waiter: Waiter, nowMs: number): Refusal | undefined {
  const waitedMs = nowMs - waiter.enqueuedAtMs;
  if (isCold(state)) {
    const reason = coldStartVerdict(state.startTrouble, { waitedMs, failedStartsSeen: state.startTrouble.failedStarts - waiter.failedStartsBefore });
    if (reason !== undefined) return noCapacity(reason);
  }
  if (dueAtMs(state, waiter) > nowMs) return undefined;
  if (isCold(state)) return stillLoading();
  return failedEverywhere(state, waiter) ? everyReplicaFailed() : queueTimeout(state, waitedMs);
}

function failedEverywhere(state: AdmissionState, waiter: Waiter): boolean {
  if (waiter.excludedReplicaIds.length === 0 || isCold(state)) return false;
  for (const { replicaId } of state.serving) if (!waiter.excludedReplicaIds.includes(replicaId) && (waiter.adapter === undefined || state.adapters.mayServe(replicaId, waiter.adapter))) return false;
  return true;
}
