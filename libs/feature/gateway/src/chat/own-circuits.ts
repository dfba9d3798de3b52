import { beginProbe, circuitAllows, closedCircuit, isFailure, openCircuitsMax, recordOutcome, type Circuit, type ReplicaOutcome } from '@penstock/domain-routing';

/** Replicas with failures that are remembered. */
const CIRCUITS_MAX = 10_000;

interface Entry {
  circuit: Circuit;
  /** The request that finds out whether the replica works again. */
  probeLeaseId: string | undefined;
}

/**
 * Which replicas failed this gateway's own requests: by this it chooses while no router judges for all. Only replicas that failed
 * lately have an entry, so that a request that goes well costs one look-up.
 */
export class OwnCircuits {
  private readonly entries = new Map<string, Entry>();

  record(replicaId: string, leaseId: string, outcome: ReplicaOutcome, nowMs: number): void {
    const entry = this.entries.get(replicaId) ?? (isFailure(outcome) ? this.open(replicaId) : undefined);
    if (entry === undefined) return;
    const isProbe = entry.probeLeaseId === leaseId;
    if (isProbe) entry.probeLeaseId = undefined;
    entry.circuit = recordOutcome(entry.circuit, outcome, { isProbe, mayOpen: true, nowMs }).circuit;
    if (entry.circuit.phase === 'closed' && entry.circuit.failureBits === 0) this.entries.delete(replicaId);
  }

  /** Those of the replicas that are to be left alone now: never more than half. */
  leftAlone(replicaIds: readonly string[], nowMs: number): ReadonlySet<string> {
    if (this.entries.size === 0) return nobody;
    const out = replicaIds.flatMap((replicaId) => {
      const circuit = this.entries.get(replicaId)?.circuit;
      return circuit === undefined || circuitAllows(circuit, nowMs) ? [] : [{ replicaId, retryAtMs: circuit.retryAtMs }];
    });
    // Those that were out longest come back first.
    return new Set(out.sort((one, other) => other.retryAtMs - one.retryAtMs).slice(0, openCircuitsMax(replicaIds.length)).map(({ replicaId }) => replicaId));
  }

  /** The request of the lease goes to the replica; it is the probe where the circuit is due for one. */
  chosen(replicaId: string, leaseId: string): void {
    const entry = this.entries.get(replicaId);
    if (entry === undefined || entry.circuit.phase === 'closed' || entry.circuit.isProbing) return;
    entry.circuit = beginProbe(entry.circuit);
    entry.probeLeaseId = leaseId;
  }

  private open(replicaId: string): Entry {
    if (this.entries.size >= CIRCUITS_MAX) this.entries.clear();
    const entry: Entry = { circuit: closedCircuit, probeLeaseId: undefined };
    this.entries.set(replicaId, entry);
    return entry;
  }
}

const nobody: ReadonlySet<string> = new Set();
