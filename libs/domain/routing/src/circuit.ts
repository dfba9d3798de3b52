/** How a request on a replica ended, as far as the replica's health is concerned. */
export type ReplicaOutcome = 'ok' | 'aborted' | 'engine-failed' | 'engine-timed-out';

/** This many failures in a row open a circuit. */
export const CIRCUIT_FAILURES_IN_A_ROW = 5;
/** So many of the newest outcomes are remembered. */
export const CIRCUIT_WINDOW = 20;
/** A larger share of failures among them opens the circuit. */
export const CIRCUIT_FAILURE_SHARE_MAX = 0.1;
/** How long an open circuit keeps requests away before one probe is let through. */
export const CIRCUIT_OPEN_MS = 10_000;

/** Whether a replica gets requests, judged by its traffic. `half-open` lets one request at a time through to find out. */
export interface Circuit {
  readonly phase: 'closed' | 'open' | 'half-open';
  readonly failuresInARow: number;
  /** One bit per remembered outcome, newest lowest; 1 is a failure. */
  readonly failureBits: number;
  /** How many outcomes are remembered, at most {@link CIRCUIT_WINDOW}. */
  readonly samples: number;
  /** When an open circuit lets a probe through, in milliseconds since the epoch; 0 while closed. */
  readonly retryAtMs: number;
  readonly isProbing: boolean;
}

export const closedCircuit: Circuit = { phase: 'closed', failuresInARow: 0, failureBits: 0, samples: 0, retryAtMs: 0, isProbing: false };

export type CircuitChange =
  | { readonly kind: 'opened'; readonly reason: string; readonly failures: number }
  | { readonly kind: 'closed' };

export interface CircuitStep {
  readonly circuit: Circuit;
  /** Undefined when the circuit stays as it was to the outside. */
  readonly change: CircuitChange | undefined;
}

/** True when the replica may get a request now. */
export function circuitAllows(circuit: Circuit, nowMs: number): boolean {
  if (circuit.phase === 'closed') return true;
  return !circuit.isProbing && nowMs >= circuit.retryAtMs;
}

/** Marks the request that is about to be sent through a circuit that is not closed. Returns a closed circuit unchanged. */
export function beginProbe(circuit: Circuit): Circuit {
  return circuit.phase === 'closed' ? circuit : { ...circuit, phase: 'half-open', isProbing: true };
}

/** The probe told nothing (its client went away, its lease expired): the next request may probe. */
export function abandonProbe(circuit: Circuit): Circuit {
  return circuit.isProbing ? { ...circuit, isProbing: false } : circuit;
}

/**
 * Learns from one outcome. `mayOpen` is false when too many of the endpoint's replicas are out already: then the circuit stays
 * closed and opens at a later failure. Outcomes of requests that began before the circuit opened do not count while it is open.
 * One that timed out opens it at once, since an engine that hangs costs each further request all of its time limit; whether it hangs,
 * or one request was merely slow, a probe that is due at once finds out.
 */
export function recordOutcome(circuit: Circuit, outcome: ReplicaOutcome, facts: { readonly isProbe: boolean; readonly mayOpen: boolean; readonly nowMs: number }): CircuitStep {
  if (circuit.phase !== 'closed') return facts.isProbe ? judgeProbe(circuit, outcome, facts.nowMs) : { circuit, change: undefined };
  if (outcome === 'aborted') return { circuit, change: undefined };
  const failed = isFailure(outcome);
  const next: Circuit = {
    ...circuit,
    failuresInARow: failed ? circuit.failuresInARow + 1 : 0,
    failureBits: ((circuit.failureBits << 1) | (failed ? 1 : 0)) & (2 ** CIRCUIT_WINDOW - 1),
    samples: Math.min(circuit.samples + 1, CIRCUIT_WINDOW),
  };
  const timedOut = outcome === 'engine-timed-out';
  const trip = failed && facts.mayOpen ? tripOf(next, timedOut) : undefined;
  if (trip === undefined) return { circuit: next, change: undefined };
  return { circuit: { ...next, phase: 'open', retryAtMs: facts.nowMs + (timedOut ? 0 : CIRCUIT_OPEN_MS) }, change: trip };
}

export function isFailure(outcome: ReplicaOutcome): boolean {
  return outcome === 'engine-failed' || outcome === 'engine-timed-out';
}

function judgeProbe(circuit: Circuit, outcome: ReplicaOutcome, nowMs: number): CircuitStep {
  switch (outcome) {
    case 'ok':
      return { circuit: closedCircuit, change: { kind: 'closed' } };
    case 'aborted':
      return { circuit: abandonProbe(circuit), change: undefined };
    case 'engine-failed':
    case 'engine-timed-out':
      return { circuit: { ...circuit, phase: 'open', isProbing: false, retryAtMs: nowMs + CIRCUIT_OPEN_MS }, change: undefined };
  }
}

function tripOf(circuit: Circuit, timedOut: boolean): CircuitChange | undefined {
  if (timedOut) return { kind: 'opened', reason: 'a request got no token in time', failures: circuit.failuresInARow };
  if (circuit.failuresInARow >= CIRCUIT_FAILURES_IN_A_ROW) {
    return { kind: 'opened', reason: `the last ${circuit.failuresInARow} requests in a row failed`, failures: circuit.failuresInARow };
  }
  const failures = countBits(circuit.failureBits);
  if (circuit.samples < CIRCUIT_WINDOW || failures <= CIRCUIT_WINDOW * CIRCUIT_FAILURE_SHARE_MAX) return undefined;
  return { kind: 'opened', reason: `${failures} of the last ${CIRCUIT_WINDOW} requests failed`, failures };
}

function countBits(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

/** How many of an endpoint's replicas may be kept out at once: never more than half. */
export function openCircuitsMax(replicas: number): number {
  return Math.floor(replicas / 2);
}
