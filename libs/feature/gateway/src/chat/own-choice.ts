import type { Lease } from '@penstock/contract-commands';
import { readyReplicasOf, type FleetState } from '@penstock/domain-lifecycle';
import { adapterAbsent, pickReplica, type AdapterBeliefs, type PromptTrail, type RoutingMemories } from '@penstock/domain-routing';
import type { Clock, IdSource, LiveProjection, Refusal } from '@penstock/kernel';
import type { LeaseBook } from './lease-book.js';

export type OwnChoice = { readonly kind: 'granted'; readonly lease: Lease } | { readonly kind: 'refused'; readonly refusal: Refusal };

/** How long such a lease counts with a router that comes back. */
const OWN_LEASE_MS = 15_000;
const RETRY_AFTER_MS = 1_000;

/**
 * The choice of a replica while no router answers: over what this gateway knows of the fleet, never beyond a replica's
 * slots as far as this gateway fills them, and around those that failed it. There is no queue here: what has no slot is refused.
 */
export class ReplicaChooser {
  private rotation = 0;

  constructor(private readonly fleet: LiveProjection<FleetState>, private readonly leases: LeaseBook, private readonly memories: RoutingMemories, private readonly ports: { readonly clock: Clock; readonly ids: IdSource; readonly adapters: AdapterBeliefs }) {}

  choose(endpointId: string, excludedReplicaIds: readonly string[], prompt?: PromptTrail, adapter?: string): OwnChoice {
    const ready = readyReplicasOf(this.fleet.state(), endpointId);
    const { circuits } = this.leases;
    const leftAlone = circuits.leftAlone(ready.map(({ replicaId }) => replicaId), this.ports.clock.now());
    const candidates = ready.flatMap((replica) => {
      const { url, engine, servedModel, slots } = replica;
      if (url === null || engine === null || servedModel === null || slots === null) return [];
      return [{ replicaId: replica.replicaId, modelVersionId: replica.modelVersionId, url, engine, servedModel, slots, inFlight: this.leases.inFlightOf(replica.replicaId), isHealthy: !leftAlone.has(replica.replicaId) }];
    });
    this.rotation = (this.rotation + 1) % Number.MAX_SAFE_INTEGER;
    const memory = prompt === undefined || candidates.length < 2 ? undefined : this.memories.of(endpointId);
    const picked = pickReplica(candidates, { excludedReplicaIds, rotation: this.rotation, nowMs: this.ports.clock.now(), prompt, memory, adapter, adapters: this.ports.adapters });
    if (picked === undefined) {
      const isAbsent = adapter !== undefined && candidates.length > 0 && !candidates.some(({ replicaId }) => this.ports.adapters.mayServe(replicaId, adapter));
      return isAbsent ? { kind: 'refused', refusal: adapterAbsent(adapter) } : refuseChoice(candidates.length > 0);
    }
    const { replicaId, modelVersionId, url, engine, servedModel } = picked;
    const leaseId = this.ports.ids.next('lease');
    circuits.chosen(replicaId, leaseId);
    if (prompt !== undefined) memory?.learn(replicaId, prompt, this.ports.clock.now());
    return {
      kind: 'granted',
      lease: { leaseId, endpointId, replicaId, modelVersionId, url, engine, servedModel, expiresAtMs: this.ports.clock.now() + OWN_LEASE_MS, queuedMs: 0, coldStart: false },
    };
  }
}

function refuseChoice(isWarm: boolean): OwnChoice {
  return {
    kind: 'refused',
    refusal: isWarm
      ? { code: 'queue_full', message: 'Every slot of this model is taken and requests cannot be queued at the moment. Try again shortly.', retryAfterMs: RETRY_AFTER_MS }
      : { code: 'model_loading', message: 'No replica of this model is ready, and one cannot be started at the moment. Try again shortly.', retryAfterMs: 5 * RETRY_AFTER_MS },
  };
}
