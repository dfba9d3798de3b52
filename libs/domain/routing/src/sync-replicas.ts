import type { AdmissionEffect } from './admission-effect.js';
import { isCold, type AdmissionState, type ServingReplica, type StartTrouble } from './admission-state.js';
import { closedCircuit, openCircuitsMax } from './circuit.js';
import { grantWaiting } from './grant.js';
import { dropLease } from './leases.js';

/** What the fleet says about one endpoint now. */
export interface EndpointFleet {
  readonly ready: readonly ServingReplica[];
  /** They finish what they have. */
  readonly draining: readonly ServingReplica[];
  readonly trouble: StartTrouble;
}

/**
 * Brings the replicas in line with the fleet: new ones serve at once, draining ones keep their leases and get no more,
 * and the leases of those that are gone end. Level-triggered: the same input again changes nothing.
 */
export function syncReplicas(state: AdmissionState, fleet: EndpointFleet, nowMs: number): AdmissionEffect[] {
  const effects: AdmissionEffect[] = [];
  const wasCold = isCold(state);
  state.startTrouble = fleet.trouble;
  const living = new Set([...fleet.ready, ...fleet.draining].map((replica) => replica.replicaId));
  for (const replicaId of [...state.replicas.keys()]) if (!living.has(replicaId)) forgetReplica(state, replicaId);
  for (const facts of fleet.ready) putReplica(state, facts, true);
  for (const facts of fleet.draining) putReplica(state, facts, false);
  state.serving = [...state.replicas.values()].filter((replica) => replica.isServing);
  keepHalfIn(state, effects);
  // Who is overdue may have changed with the replicas.
  state.earliestDueMs = 0;
  if (isCold(state)) stopQueueClocks(state, effects);
  else if (wasCold) startQueueClocks(state, nowMs);
  grantWaiting(state, nowMs, effects);
  return effects;
}

function putReplica(state: AdmissionState, facts: ServingReplica, isServing: boolean): void {
  const known = state.replicas.get(facts.replicaId);
  if (known !== undefined) {
    known.facts = facts;
    known.slots = facts.slots;
    known.kvTokens = facts.kvTokens ?? null;
    known.contextTokens = facts.contextTokens ?? null;
    known.isServing = isServing;
    return;
  }
  state.replicas.set(facts.replicaId, { replicaId: facts.replicaId, facts, slots: facts.slots, inFlight: 0, kvTokens: facts.kvTokens ?? null, tokensInFlight: 0, longInFlight: 0, contextTokens: facts.contextTokens ?? null, isHealthy: true, circuit: closedCircuit, isServing });
}

function forgetReplica(state: AdmissionState, replicaId: string): void {
  state.replicas.delete(replicaId);
  state.memory.forget(replicaId);
  for (const loan of state.loans.values()) loan.replicas.delete(replicaId);
  for (const held of state.leases.values()) if (held.lease.replicaId === replicaId) dropLease(state, held);
}

/** With fewer replicas, fewer may be out: those that were out longest come back first. */
function keepHalfIn(state: AdmissionState, effects: AdmissionEffect[]): void {
  const out = state.serving.filter((replica) => replica.circuit.phase !== 'closed').sort((a, b) => a.circuit.retryAtMs - b.circuit.retryAtMs);
  for (const replica of out.slice(0, Math.max(0, out.length - openCircuitsMax(state.serving.length)))) {
    replica.circuit = closedCircuit;
    effects.push({ kind: 'circuit-closed', endpointId: state.settings.endpointId, replicaId: replica.replicaId });
  }
}

function startQueueClocks(state: AdmissionState, nowMs: number): void {
  state.wakeRequested = false;
  for (const waiter of state.waiting.values()) waiter.queueClockMs = nowMs;
}

function stopQueueClocks(state: AdmissionState, effects: AdmissionEffect[]): void {
  for (const waiter of state.waiting.values()) {
    waiter.queueClockMs = null;
    waiter.metColdStart = true;
  }
  if (state.waiting.size === 0 || state.wakeRequested) return;
  state.wakeRequested = true;
  effects.push({ kind: 'wake', endpointId: state.settings.endpointId, waiting: state.waiting.size });
}
