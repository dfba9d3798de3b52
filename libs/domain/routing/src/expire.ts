import type { AdmissionEffect } from './admission-effect.js';
import { isCold, type AdmissionState } from './admission-state.js';
import { refuseWaiter } from './admit.js';
import { grantWaiting } from './grant.js';
import { expireLeases } from './leases.js';
import { expireLoans } from './loans.js';
import { dueAtMs, overdueRefusal } from './overdue.js';

/**
 * Lets time pass: leases that nobody renewed end, free slots (a circuit may let a probe through by now) are granted, and
 * requests that waited too long, or wait for a start that will not come, are refused. Called several times a second.
 */
export function expire(state: AdmissionState, nowMs: number): { readonly expired: number; readonly effects: AdmissionEffect[] } {
  const effects: AdmissionEffect[] = [];
  const expired = expireLeases(state, nowMs) + expireLoans(state, nowMs);
  grantWaiting(state, nowMs, effects);
  if (nowMs >= state.earliestDueMs || isCold(state)) refuseOverdue(state, nowMs, effects);
  return { expired, effects };
}

function refuseOverdue(state: AdmissionState, nowMs: number, effects: AdmissionEffect[]): void {
  state.earliestDueMs = Infinity;
  for (const waiter of state.waiting.values()) {
    const refusal = overdueRefusal(state, waiter, nowMs);
    if (refusal !== undefined) refuseWaiter(state, waiter, refusal, effects);
    else state.earliestDueMs = Math.min(state.earliestDueMs, dueAtMs(state, waiter));
  }
}
