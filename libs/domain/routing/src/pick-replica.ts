import { kvRoomFilter } from './replica-work.js';

/** What the choice of a replica looks at. The admission state and the gateway's fallback both keep records of this shape. */
export interface ReplicaCandidate {
  readonly replicaId: string;
  /** Requests that hold a slot now. */
  readonly inFlight: number;
  /** Requests that may hold a slot at once. */
  readonly slots: number;
  /** False while its circuit keeps requests away. */
  readonly isHealthy: boolean;
  /** Tokens that its KV cache holds; null or left out when that is not known. */
  readonly kvTokens?: number | null;
  /** Tokens that the requests with a slot may need. */
  readonly tokensInFlight?: number;
  /** Long contexts among them. */
  readonly longInFlight?: number;
}

export interface PickContext {
  /** Replicas that already failed this request. */
  readonly excludedReplicaIds: readonly string[];
  /** Counts up from pick to pick; equal scores are taken in turn by it, so that the choice needs no randomness. */
  readonly rotation: number;
  /** Tokens that the request may need, its answer included. */
  readonly workTokens?: number;
}

/** Leaves a replica out. */
export interface ReplicaFilter {
  readonly name: string;
  passes(candidate: ReplicaCandidate, context: PickContext): boolean;
}

/** Rates a replica from 0 (worst) to 1 (best). */
export interface ReplicaScorer {
  readonly name: string;
  readonly weight: number;
  score(candidate: ReplicaCandidate, context: PickContext): number;
}

export interface PickPolicy {
  readonly filters: readonly ReplicaFilter[];
  readonly scorers: readonly ReplicaScorer[];
}

export const healthyFilter: ReplicaFilter = { name: 'healthy', passes: (candidate) => candidate.isHealthy };

export const notExcludedFilter: ReplicaFilter = {
  name: 'not-excluded',
  passes: (candidate, context) => !context.excludedReplicaIds.includes(candidate.replicaId),
};

export const freeSlotFilter: ReplicaFilter = { name: 'free-slot', passes: (candidate) => candidate.inFlight < candidate.slots };

export const leastLoadedScorer: ReplicaScorer = {
  name: 'least-loaded',
  weight: 1,
  score: (candidate) => 1 - candidate.inFlight / candidate.slots,
};

export const defaultPickPolicy: PickPolicy = {
  filters: [healthyFilter, notExcludedFilter, freeSlotFilter, kvRoomFilter],
  scorers: [leastLoadedScorer],
};

/**
 * The best candidate that passes every filter; undefined when none does. The same input gives the same replica.
 * Plain loops, since this runs for each request.
 */
export function pickReplica<Candidate extends ReplicaCandidate>(candidates: readonly Candidate[], context: PickContext, policy: PickPolicy = defaultPickPolicy): Candidate | undefined {
  const count = candidates.length;
  let best: Candidate | undefined;
  let bestScore = -Infinity;
  for (let offset = 0; offset < count; offset += 1) {
    const candidate = candidates[(context.rotation + offset) % count];
    if (candidate === undefined || !passesAll(candidate, context, policy.filters)) continue;
    const score = scoreOf(candidate, context, policy.scorers);
    if (score > bestScore) {
      best = candidate;
      bestScore = score;
    }
  }
  return best;
}

function passesAll(candidate: ReplicaCandidate, context: PickContext, filters: readonly ReplicaFilter[]): boolean {
  for (const filter of filters) if (!filter.passes(candidate, context)) return false;
  return true;
}

function scoreOf(candidate: ReplicaCandidate, context: PickContext, scorers: readonly ReplicaScorer[]): number {
  let total = 0;
  for (const scorer of scorers) total += scorer.weight * scorer.score(candidate, context);
  return total;
}
