import type { Lease } from '@penstock/contract-commands';
import type { AdmissionEffect } from './admission-effect.js';
import { removeWaiter } from './admission-queue.js';
import type { AdmissionReplica, AdmissionState, Waiter } from './admission-state.js';
import { beginProbe } from './circuit.js';
import { mayServe } from './may-serve.js';
import { pickReplica } from './pick-replica.js';
import { isLongContext } from './replica-work.js';

/** Waiting requests that are looked past because none of the free replicas suits them. */
export const GRANT_SCAN_MAX = 64;

/** Gives free slots to whoever waits, in the fair order. A request that excludes the free replicas, or names an adapter that they do not serve, does not hold up those behind it. */
export function grantWaiting(state: AdmissionState, nowMs: number, effects: AdmissionEffect[]): void {
  if (state.waiting.size > 0) state.lastQueuedAtMs = nowMs;
  for (let passedOver = 0; passedOver < GRANT_SCAN_MAX;) {
    const waiter = state.order.at(passedOver);
    if (waiter === undefined) return;
    if (tryGrant(state, waiter, nowMs, effects)) continue;
    passedOver += 1;
    if (waiter.excludedReplicaIds.length === 0 && waiter.adapter === undefined) return;
  }
}

/** Grants one request a slot, if a replica that suits it has one. */
export function tryGrant(state: AdmissionState, waiter: Waiter, nowMs: number, effects: AdmissionEffect[]): boolean {
  if (nowMs < state.grantsFromMs) return false;
  for (const replica of state.serving) replica.isHealthy = mayServe(replica, state.settings, nowMs);
  const { excludedReplicaIds, workTokens, prompt, adapter } = waiter;
  // With one replica there is nothing to choose, and nothing to learn for a choice.
  const memory = state.serving.length > 1 ? state.memory : undefined;
  const replica = pickReplica(state.serving, { excludedReplicaIds, rotation: state.rotation, workTokens, nowMs, prompt, memory, adapter, adapters: state.adapters });
  if (replica === undefined) return false;
  state.rotation = (state.rotation + 1) % Number.MAX_SAFE_INTEGER;
  if (state.waiting.get(waiter.requestId) === waiter) state.order.serve(waiter);
  removeWaiter(state, waiter);
  if (prompt !== undefined) memory?.learn(replica.replicaId, prompt, nowMs);
  if (adapter !== undefined) state.adapters.note(replica.replicaId, adapter);
  const lease = lend(state, replica, waiter, nowMs);
  effects.push({ kind: 'grant', requestId: waiter.requestId, leaseId: waiter.leaseId, lease });
  return true;
}

function lend(state: AdmissionState, replica: AdmissionReplica, waiter: Waiter, nowMs: number): Lease {
  const isProbe = replica.circuit.phase !== 'closed';
  replica.circuit = beginProbe(replica.circuit);
  replica.inFlight += 1;
  replica.tokensInFlight += waiter.workTokens;
  const isLong = isLongContext(waiter.workTokens, replica.kvTokens);
  if (isLong) replica.longInFlight += 1;
  const { replicaId, modelVersionId, url, engine, servedModel } = replica.facts;
  const expiresAtMs = nowMs + state.settings.leaseTtlMs;
  const lease: Lease = {
    leaseId: waiter.leaseId,
    endpointId: state.settings.endpointId,
    replicaId, modelVersionId, url, engine, servedModel,
    expiresAtMs,
    queuedMs: Math.max(0, nowMs - waiter.enqueuedAtMs),
    coldStart: waiter.metColdStart,
  };
  state.leases.set(lease.leaseId, { lease, requestId: waiter.requestId, gatewayId: waiter.gatewayId, grantedAtMs: nowMs, isProbe, workTokens: waiter.workTokens, isLong, expiresAtMs });
  state.earliestExpiryMs = Math.min(state.earliestExpiryMs, expiresAtMs);
  return lease;
}
