import type { PickContext, ReplicaCandidate, ReplicaScorer } from './pick-replica.js';

/**
 * How much longer the last free slot of a replica takes to the first token than its first one, in milliseconds: decoding
 * beside a prompt slows it down, and a full cache throws requests back.
 */
export const FULL_LOAD_MS = 400;
/** What a session loses by going elsewhere beyond the blocks that are counted: what engines keep of the answers themselves. */
export const SESSION_MOVE_MS = 20;
/** Bringing an adapter of about a hundred megabytes to the accelerator, over PCIe and out of the host's memory. */
export const ADAPTER_LOAD_MS = 100;

/** Computing what of the prompt the replica has not cached. The term that prefix affinity comes from. */
export const prefillScorer: ReplicaScorer = {
  name: 'prefill',
  costMs: ({ replicaId }: ReplicaCandidate, { memory, prompt }: PickContext) =>
    memory === undefined || prompt === undefined ? 0 : (prompt.tokens - memory.hitTokens(replicaId, prompt)) * memory.prefillMsPerToken,
};

/** Prompts that the replica has to compute before this one. Keeps the requests for one popular beginning from heaping up on one replica. */
export const backlogScorer: ReplicaScorer = {
  name: 'backlog',
  costMs: ({ replicaId }: ReplicaCandidate, { memory, nowMs = 0 }: PickContext) => memory?.backlogMs(replicaId, nowMs) ?? 0,
};

export const loadScorer: ReplicaScorer = {
  name: 'load',
  costMs: ({ inFlight, slots }: ReplicaCandidate) => (FULL_LOAD_MS * inFlight) / slots,
};

/** A session that is known stays where it was, other things being nearly equal. */
export const sessionScorer: ReplicaScorer = {
  name: 'session',
  costMs({ replicaId }: ReplicaCandidate, { memory, prompt }: PickContext) {
    const known = prompt === undefined ? undefined : memory?.replicaOfSession(prompt.session);
    return known === undefined || known === replicaId ? 0 : SESSION_MOVE_MS;
  },
};

/** An adapter that is on the accelerator need not be brought there; one that pushes another out makes that one come back some time. */
export const adapterScorer: ReplicaScorer = {
  name: 'adapter',
  costMs({ replicaId }: ReplicaCandidate, { adapter, adapters }: PickContext) {
    if (adapter === undefined || adapters === undefined || adapters.isResident(replicaId, adapter)) return 0;
    return adapters.isFull(replicaId) ? 2 * ADAPTER_LOAD_MS : ADAPTER_LOAD_MS;
  },
};

/** Together: when the first token of the request is to be expected. */
export const firstTokenScorers: readonly ReplicaScorer[] = [prefillScorer, backlogScorer, loadScorer, sessionScorer, adapterScorer];
