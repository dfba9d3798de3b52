import type { Lease } from '@penstock/contract-commands';
import type { AdmissionEffect } from './admission-effect.js';
import type { AdmissionReplica, AdmissionState, HeldLease } from './admission-state.js';
import { abandonProbe, openCircuitsMax, recordOutcome, type ReplicaOutcome } from './circuit.js';
import { grantWaiting } from './grant.js';

/** Given-back leases that are remembered, so that a late renewal does not revive them. */
export const RELEASED_LATELY_MAX = 2_000;
/** Leases of one endpoint that may be held: more is a fault of whoever renews. */
export const LEASES_MAX = 20_000;
/** Weight of the newest request in the mean time that a slot is held. */
const MEAN_SERVICE_WEIGHT = 0.1;

export interface Release {
  readonly leaseId: string;
  readonly outcome: ReplicaOutcome;
}

/** Gives slots back, judges the replicas by the outcomes, and grants the slots to whoever waits. Unknown leases change nothing. */
export function release(state: AdmissionState, releases: readonly Release[], nowMs: number): { readonly released: number; readonly effects: AdmissionEffect[] } {
  const effects: AdmissionEffect[] = [];
  let released = 0;
  for (const { leaseId, outcome } of releases) {
    rememberReleased(state, leaseId);
    const held = state.leases.get(leaseId);
    if (held === undefined) continue;
    released += 1;
    const replica = state.replicas.get(held.lease.replicaId);
    if (replica !== undefined) judge(state, replica, held.isProbe, outcome, nowMs, effects);
    if (outcome === 'ok' && held.requestId !== null) learnServiceTime(state, nowMs - held.grantedAtMs);
    dropLease(state, held);
  }
  grantWaiting(state, nowMs, effects);
  return { released, effects };
}

/**
 * Extends leases. One that is not known was granted by an earlier owner, or by a gateway on its own while no owner answered:
 * it is taken over, even beyond the slots of its replica, since the request runs there in any case.
 */
export function renew(state: AdmissionState, gatewayId: string, leases: readonly Lease[], nowMs: number): number {
  let renewed = 0;
  const expiresAtMs = nowMs + state.settings.leaseTtlMs;
  for (const lease of leases) {
    const held = state.leases.get(lease.leaseId);
    if (held !== undefined) held.expiresAtMs = expiresAtMs;
    else if (!adopt(state, gatewayId, lease, nowMs, expiresAtMs)) continue;
    renewed += 1;
  }
  return renewed;
}

/** Forgets a lease whose request is over without an outcome that tells anything about the replica. */
export function forgetLease(state: AdmissionState, held: HeldLease): void {
  const replica = state.replicas.get(held.lease.replicaId);
  if (held.isProbe && replica !== undefined) replica.circuit = abandonProbe(replica.circuit);
  rememberReleased(state, held.lease.leaseId);
  dropLease(state, held);
}

/** Ends the leases that nobody renewed in time. */
export function expireLeases(state: AdmissionState, nowMs: number): number {
  if (nowMs < state.earliestExpiryMs) return 0;
  let expired = 0;
  state.earliestExpiryMs = Infinity;
  for (const held of state.leases.values()) {
    if (held.expiresAtMs > nowMs) {
      state.earliestExpiryMs = Math.min(state.earliestExpiryMs, held.expiresAtMs);
      continue;
    }
    expired += 1;
    const replica = state.replicas.get(held.lease.replicaId);
    if (held.isProbe && replica !== undefined) replica.circuit = abandonProbe(replica.circuit);
    // It is not remembered as released: a gateway that was only slow may still renew it.
    dropLease(state, held);
  }
  return expired;
}

/** Removes the lease and frees its slot. */
export function dropLease(state: AdmissionState, held: HeldLease): void {
  if (!state.leases.delete(held.lease.leaseId)) return;
  const replica = state.replicas.get(held.lease.replicaId);
  if (replica === undefined) return;
  replica.inFlight -= 1;
  replica.tokensInFlight -= held.workTokens;
  if (held.isLong) replica.longInFlight -= 1;
}

function adopt(state: AdmissionState, gatewayId: string, lease: Lease, nowMs: number, expiresAtMs: number): boolean {
  const replica = state.replicas.get(lease.replicaId);
  if (replica === undefined || state.releasedLately.has(lease.leaseId) || state.leases.size >= LEASES_MAX) return false;
  replica.inFlight += 1;
  state.leases.set(lease.leaseId, { lease, requestId: null, gatewayId, grantedAtMs: nowMs, isProbe: false, workTokens: 0, isLong: false, expiresAtMs });
  state.earliestExpiryMs = Math.min(state.earliestExpiryMs, expiresAtMs);
  state.lastRequestAtMs ??= nowMs;
  return true;
}

export function judge(state: AdmissionState, replica: AdmissionReplica, isProbe: boolean, outcome: ReplicaOutcome, nowMs: number, effects: AdmissionEffect[]): void {
  const out = state.serving.filter((candidate) => candidate.circuit.phase !== 'closed').length;
  const mayOpen = replica.isServing && out < openCircuitsMax(state.serving.length);
  const { circuit, change } = recordOutcome(replica.circuit, outcome, { isProbe, mayOpen, nowMs });
  replica.circuit = circuit;
  const named = { endpointId: state.settings.endpointId, replicaId: replica.replicaId };
  if (change?.kind === 'opened') effects.push({ kind: 'circuit-opened', ...named, reason: change.reason, failures: change.failures, retryAtMs: circuit.retryAtMs });
  if (change?.kind === 'closed') effects.push({ kind: 'circuit-closed', ...named });
}

function learnServiceTime(state: AdmissionState, heldMs: number): void {
  state.meanServiceMs += MEAN_SERVICE_WEIGHT * (Math.max(0, heldMs) - state.meanServiceMs);
}

function rememberReleased(state: AdmissionState, leaseId: string): void {
  state.releasedLately.add(leaseId);
  if (state.releasedLately.size <= RELEASED_LATELY_MAX) return;
  for (const oldest of state.releasedLately) {
    state.releasedLately.delete(oldest);
    return;
  }
}
