/** What the routers said last about one endpoint, or that nothing fresh is known. */
export type EndpointLoadReading =
  | { readonly kind: 'unknown' }
  | {
      readonly kind: 'known';
      readonly waiting: number;
      readonly running: number;
      /** Milliseconds since the epoch; null when there was no request since the router started. */
      readonly lastRequestAtMs: number | null;
    };

/** How long conditions have lasted; it lives in memory and starts anew after a restart, which only delays a decision. */
export interface LoadMemory {
  /** Since when routers say without a gap that there was no request since they started; a router that restarts begins anew. */
  readonly unusedSinceMs: number | null;
  /** Since when more requests wait than the replicas are expected to take. */
  readonly crowdedSinceMs: number | null;
  /** Since when fewer replicas would do, and the most requests that ran at once in that time. */
  readonly calm: { readonly sinceMs: number; readonly peakRunning: number } | null;
}

export const emptyLoadMemory: LoadMemory = { unusedSinceMs: null, crowdedSinceMs: null, calm: null };

export interface LoadObservation {
  readonly load: EndpointLoadReading;
  readonly nowMs: number;
  readonly wanted: number;
  /** Replicas that serve or will soon: ready and starting ones, each counted once. */
  readonly coming: number;
  readonly slotsPerReplica: number;
}

/** Waiting requests per replica that are still normal; more, for a while, asks for another replica. */
export const WAITING_PER_REPLICA_MAX = 1;

/** A replica counts as well used when this share of its slots is busy: scaling down aims at it. */
export const TARGET_SLOT_USE = 0.7;

/** Adds one reading to the memory. No reading forgets everything: no data is neither calm nor crowded. */
export function observeLoad(memory: LoadMemory, observation: LoadObservation): LoadMemory {
  const { load, nowMs, wanted } = observation;
  if (load.kind === 'unknown') return emptyLoadMemory;
  const crowded = isCrowded(load.waiting, observation.coming);
  const calm = load.waiting === 0 && replicasFor(load.running, observation.slotsPerReplica) < wanted;
  return {
    unusedSinceMs: load.lastRequestAtMs === null ? (memory.unusedSinceMs ?? nowMs) : null,
    crowdedSinceMs: crowded ? (memory.crowdedSinceMs ?? nowMs) : null,
    calm: calm ? { sinceMs: memory.calm?.sinceMs ?? nowMs, peakRunning: Math.max(memory.calm?.peakRunning ?? 0, load.running) } : null,
  };
}

/** A starting replica counts as capacity, so that one queue does not ask for the same replica again and again. */
export function isCrowded(waiting: number, coming: number): boolean {
  return coming > 0 && waiting / coming > WAITING_PER_REPLICA_MAX;
}

/** How many replicas carry `running` requests with some room. */
export function replicasFor(running: number, slotsPerReplica: number): number {
  return Math.ceil(running / (slotsPerReplica * TARGET_SLOT_USE));
}
