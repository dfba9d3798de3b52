import type { AdmissionEffect } from './admission-effect.js';
import type { AdmissionState, ServingReplica } from './admission-state.js';
import { beginProbe, circuitAllows, type ReplicaOutcome } from './circuit.js';
import { grantWaiting } from './grant.js';
import { judge } from './leases.js';

/** A replica that is to generate one token, to find out whether it works again. */
export type TokenProbe = Pick<ServingReplica, 'replicaId' | 'url' | 'engine' | 'servedModel'>;

/** The replicas whose open circuits are due for a probe, each marked as being probed. None where requests themselves are the probes. */
export function takeProbes(state: AdmissionState, nowMs: number): readonly TokenProbe[] {
  if (state.settings.probesApart !== true) return [];
  const probes: TokenProbe[] = [];
  for (const replica of state.serving) {
    if (replica.circuit.phase === 'closed' || !circuitAllows(replica.circuit, nowMs)) continue;
    replica.circuit = beginProbe(replica.circuit);
    const { replicaId, url, engine, servedModel } = replica.facts;
    probes.push({ replicaId, url, engine, servedModel });
  }
  return probes;
}

/** Judges the replica by how its probe ended; one that works gets requests at once. Nothing happens for a replica that is gone. */
export function probeEnded(state: AdmissionState, replicaId: string, outcome: ReplicaOutcome, nowMs: number): AdmissionEffect[] {
  const effects: AdmissionEffect[] = [];
  const replica = state.replicas.get(replicaId);
  if (replica === undefined || !replica.circuit.isProbing) return effects;
  judge(state, replica, true, outcome, nowMs, effects);
  grantWaiting(state, nowMs, effects);
  return effects;
}
