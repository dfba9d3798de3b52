import type { PickContext, ReplicaCandidate, ReplicaFilter } from './pick-replica.js';

/** A request that may fill more than this share of a replica's KV cache is a long context. */
export const LONG_CONTEXT_SHARE = 0.25;
/** Long contexts that one replica works on at once: each of them slows everybody else's tokens down. */
export const LONG_CONTEXTS_MAX = 2;

/** True for a request that may need a large part of the replica's KV cache. `kvTokens` null says that its size is not known. */
export function isLongContext(workTokens: number, kvTokens: number | null): boolean {
  return kvTokens !== null && workTokens > kvTokens * LONG_CONTEXT_SHARE;
}

/** Leaves out replicas whose KV cache may not hold the request beside those that are there. An idle replica takes any request. */
export const kvRoomFilter: ReplicaFilter = {
  name: 'kv-room',
  passes: (candidate: ReplicaCandidate, { workTokens = 0 }: PickContext) => {
    const { kvTokens = null, tokensInFlight = 0, longInFlight = 0 } = candidate;
    if (kvTokens === null || candidate.inFlight === 0) return true;
    return tokensInFlight + workTokens <= kvTokens && (longInFlight < LONG_CONTEXTS_MAX || !isLongContext(workTokens, kvTokens));
  },
};
