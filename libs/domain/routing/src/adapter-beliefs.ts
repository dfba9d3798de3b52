import type { AdapterReport } from '@penstock/contract-commands';

/** Replicas with adapters that one process remembers; the one heard of longest ago is forgotten first. */
export const ADAPTER_REPLICAS_MAX = 20_000;
/** Adapters that an engine holds on its accelerator unless it says otherwise: vLLM's default of `--max-loras`. */
export const ADAPTER_SLOTS_DEFAULT = 1;

interface ReplicaAdapters {
  /** What its engine serves; null while that is not known. */
  served: ReadonlySet<string> | null;
  slots: number;
  /** On the accelerator as far as is known, the one used longest ago first, and never more than `slots`. */
  resident: readonly string[];
}

/**
 * What a process believes of the adapters of replicas: engines say which they serve and which they work with, and adapters that a
 * request was sent with are brought to the accelerator for it. Engines keep an adapter there until another one needs its place, and
 * the one used longest ago goes first.
 */
export class AdapterBeliefs {
  /** The replica heard of longest ago first. */
  private readonly replicas = new Map<string, ReplicaAdapters>();

  /** An engine's own word. What it works with now was used last. */
  hear({ replicaId, served, active, slots }: Pick<AdapterReport, 'replicaId' | 'served' | 'active' | 'slots'>): void {
    const replica = this.open(replicaId);
    this.replicas.delete(replicaId);
    this.replicas.set(replicaId, replica);
    if (served !== null) replica.served = new Set(served);
    if (slots !== null) replica.slots = slots;
    replica.resident = lastUsed([...replica.resident, ...active], replica);
    for (const [oldest] of this.replicas) {
      if (this.replicas.size <= ADAPTER_REPLICAS_MAX) break;
      this.replicas.delete(oldest);
    }
  }

  /** A request for the adapter goes to the replica. */
  note(replicaId: string, adapter: string): void {
    const replica = this.open(replicaId);
    replica.resident = lastUsed([...replica.resident, adapter], replica);
  }

  /** False only for a replica whose engine said what it serves, and the adapter is not among it. */
  mayServe(replicaId: string, adapter: string): boolean {
    return this.replicas.get(replicaId)?.served?.has(adapter) !== false;
  }

  isResident(replicaId: string, adapter: string): boolean {
    return this.replicas.get(replicaId)?.resident.includes(adapter) === true;
  }

  /** Whether one adapter has to leave the accelerator before another one comes. */
  isFull(replicaId: string): boolean {
    const replica = this.replicas.get(replicaId);
    return replica !== undefined && replica.resident.length >= replica.slots;
  }

  /** Forgets replicas that serve no more. */
  keepOnly(isServing: (replicaId: string) => boolean): void {
    for (const replicaId of this.replicas.keys()) if (!isServing(replicaId)) this.replicas.delete(replicaId);
  }

  private open(replicaId: string): ReplicaAdapters {
    const known = this.replicas.get(replicaId);
    if (known !== undefined) return known;
    const replica: ReplicaAdapters = { served: null, slots: ADAPTER_SLOTS_DEFAULT, resident: [] };
    this.replicas.set(replicaId, replica);
    return replica;
  }
}

/** Each name once, at its last place; as many from the end as there are slots, and none that the engine does not serve. */
function lastUsed(names: readonly string[], { served, slots }: ReplicaAdapters): readonly string[] {
  return names.filter((name, index) => names.lastIndexOf(name) === index && served?.has(name) !== false).slice(-slots);
}
