import type { AdapterBeliefs } from './adapter-beliefs.js';
import type { PromptTrail } from './prompt-trail.js';
import { kvRoomFilter } from './replica-work.js';
import type { RoutingMemory } from './routing-memory.js';
import { firstTokenScorers } from './routing-scorers.js';

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
  /** Prompt and answer of one request together, in tokens; null or left out when that is not known. */
  readonly contextTokens?: number | null;
}

export interface PickContext {
  /** Replicas that already failed this request. */
  readonly excludedReplicaIds: readonly string[];
  /** Counts up from pick to pick; equal scores are taken in turn by it, so that the choice needs no randomness. */
  readonly rotation: number;
  /** Tokens that the request may need, its answer included. */
  readonly workTokens?: number;
  /** Milliseconds since the epoch. */
  readonly nowMs?: number;
  /** What is known of the prompt, and of the replicas by the prompts before it. Without both, load alone decides. */
  readonly prompt?: PromptTrail | undefined;
  readonly memory?: RoutingMemory | undefined;
  /** The adapter that the request names, and what is known of the adapters of replicas. */
  readonly adapter?: string | undefined;
  readonly adapters?: AdapterBeliefs | undefined;
}

/** Leaves a replica out. */
export interface ReplicaFilter {
  readonly name: string;
  passes(candidate: ReplicaCandidate, context: PickContext): boolean;
}

/** Rates a replica by what it costs a request to go there, in milliseconds until its first token. Less is better. */
export interface ReplicaScorer {
  readonly name: string;
  costMs(candidate: ReplicaCandidate, context: PickContext): number;
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

/** Leaves out replicas whose context the request may not fit into, where replicas of one endpoint differ in it. */
export const contextFilter: ReplicaFilter = {
  name: 'context',
  passes: ({ contextTokens = null }, { workTokens = 0 }) => contextTokens === null || workTokens <= contextTokens,
};

/** Leaves out replicas whose engine does not serve the adapter. What an engine serves that did not say so yet is for itself to judge. */
export const adapterFilter: ReplicaFilter = {
  name: 'adapter',
  passes: ({ replicaId }, { adapter, adapters }) => adapter === undefined || adapters === undefined || adapters.mayServe(replicaId, adapter),
};

export const defaultPickPolicy: PickPolicy = {
  filters: [healthyFilter, notExcludedFilter, freeSlotFilter, contextFilter, kvRoomFilter, adapterFilter],
  scorers: firstTokenScorers,
};

/**
 * The candidate that passes every filter and costs least; undefined when none does. The same input gives the same replica, and
 * equal ones are taken in turn. Plain loops, since this runs for each request.
 */
export function pickReplica<Candidate extends ReplicaCandidate>(candidates: readonly Candidate[], context: PickContext, policy: PickPolicy = defaultPickPolicy): Candidate | undefined {
  const count = candidates.length;
  let best: Candidate | undefined;
  let bestMs = Infinity;
  for (let offset = 0; offset < count; offset += 1) {
    const candidate = candidates[(context.rotation + offset) % count];
    if (candidate === undefined || !passesAll(candidate, context, policy.filters)) continue;
    const costMs = costOf(candidate, context, policy.scorers);
    if (costMs < bestMs) {
      best = candidate;
      bestMs = costMs;
    }
  }
  return best;
}

function passesAll(candidate: ReplicaCandidate, context: PickContext, filters: readonly ReplicaFilter[]): boolean {
  for (const filter of filters) if (!filter.passes(candidate, context)) return false;
  return true;
}

function costOf(candidate: ReplicaCandidate, context: PickContext, scorers: readonly ReplicaScorer[]): number {
  let total = 0;
  for (const scorer of scorers) total += scorer.costMs(candidate, context);
  return total;
}
