import type { Lease, LoanReport, ReplicaLoan, ReplicaReport } from '@penstock/contract-commands';
import type { AdapterBeliefs } from './adapter-beliefs.js';
import { isFailure, type ReplicaOutcome } from './circuit.js';
import { LOAN_TTL_MS } from './loans.js';
import { adapterFilter, freeSlotFilter, healthyFilter, notExcludedFilter, pickReplica, type PickContext, type PickPolicy, type ReplicaCandidate } from './pick-replica.js';
import type { PromptTrail } from './prompt-trail.js';
import { isLongContext } from './replica-work.js';
import type { RoutingMemory } from './routing-memory.js';
import { firstTokenScorers } from './routing-scorers.js';

/** A gateway asks for this much more than it used at its busiest since its last report, so that growth meets no queue. */
const HEADROOM = 1.25;
const HEADROOM_SLOTS = 2;
/** And this share of what it grew by meanwhile, since load that grows goes on growing for a while. */
const GROWTH_AHEAD = 1;
/** So many failures in a row keep a gateway's own requests away from a replica until the router has judged. */
const FAILURES_UNTIL_ASKED = 2;

interface LentReplica extends ReplicaCandidate {
  /** The slots it may fill now. */
  slots: number;
  inFlight: number;
  isHealthy: boolean;
  /** Tokens that it may fill now; null when the size of the KV cache is not known. */
  tokens: number | null;
  tokensInUse: number;
  /** Of the whole replica. */
  kvTokens: number | null;
  lease: Lease;
  ok: number;
  failed: number;
  failedLast: number;
  timedOutLast: number;
}

/** How many long contexts a replica has is known to the router alone, so those are its to place. */
const lentRoomFilter = {
  name: 'lent-kv-room',
  passes({ tokens = null, tokensInUse = 0, kvTokens = null }: ReplicaCandidate & Partial<LentReplica>, { workTokens = 0 }: PickContext): boolean {
    return tokens === null || (tokensInUse + workTokens <= tokens && !isLongContext(workTokens, kvTokens));
  },
};
const pursePolicy: PickPolicy = { filters: [healthyFilter, notExcludedFilter, freeSlotFilter, lentRoomFilter, adapterFilter], scorers: firstTokenScorers };

export interface PurseRequest {
  readonly excludedReplicaIds: readonly string[];
  /** Tokens that the request may need, its answer included. */
  readonly workTokens: number;
  /** What is known of its prompt; its blocks are looked at only where there is a choice. */
  readonly prompt?: PromptTrail | undefined;
  /** What this gateway knows of the endpoint's replicas by the prompts before this one. */
  readonly memory?: RoutingMemory | undefined;
  /** The adapter that the request names, and what this gateway knows of the adapters of replicas. */
  readonly adapter?: string | undefined;
  readonly adapters?: AdapterBeliefs | undefined;
}

/**
 * The slots of one endpoint that a gateway was lent, and what it does with them: the other end of `reportLoans`. A request
 * that finds a slot here needs nobody else. Pure: it reads no clock, and the same calls give the same results.
 */
export class SlotPurse {
  private readonly replicas = new Map<string, LentReplica>();
  /** Of `replicas`, those with slots to fill. */
  private candidates: readonly LentReplica[] = [];
  private validUntilMs = -Infinity;
  private sequence = 0;
  private rotation = 0;
  private peak = 0;
  private peakBefore = 0;
  private requests = 0;
  /** Requests that hold a slot, lent or not. */
  inUse = 0;

  constructor(readonly endpointId: string) {}

  /** A slot for one request; undefined when only the router can say. Ends with {@link give}. */
  take(request: PurseRequest, nowMs: number): Lease | undefined {
    if (nowMs >= this.validUntilMs) return undefined;
    const { excludedReplicaIds, workTokens, prompt, adapter, adapters } = request;
    const memory = this.candidates.length > 1 ? request.memory : undefined;
    const replica = pickReplica(this.candidates, { excludedReplicaIds, workTokens, rotation: this.rotation, nowMs, prompt, memory, adapter, adapters }, pursePolicy);
    if (replica === undefined) return undefined;
    if (prompt !== undefined) memory?.learn(replica.replicaId, prompt, nowMs);
    if (adapter !== undefined) adapters?.note(replica.replicaId, adapter);
    this.rotation = (this.rotation + 1) % Number.MAX_SAFE_INTEGER;
    replica.inFlight += 1;
    replica.tokensInUse += workTokens;
    this.enter();
    return replica.lease;
  }

  /** Gives a slot back that {@link take} gave. True when the router should hear of it soon. */
  give(replicaId: string, workTokens: number, outcome: ReplicaOutcome): boolean {
    this.leave();
    const replica = this.replicas.get(replicaId);
    if (replica === undefined) return false;
    replica.inFlight -= 1;
    replica.tokensInUse -= workTokens;
    if (outcome === 'ok') {
      replica.ok += 1;
      replica.failedLast = 0;
      replica.timedOutLast = 0;
    } else if (isFailure(outcome)) {
      replica.failed += 1;
      replica.failedLast += 1;
      if (outcome === 'engine-timed-out') replica.timedOutLast += 1;
      replica.isHealthy = mayBeFilled(replica);
    }
    return isFailure(outcome) || replica.inFlight >= replica.slots;
  }

  /** A request that the router gave a slot counts as demand, too. */
  enter(): void {
    this.inUse += 1;
    this.requests += 1;
    if (this.inUse > this.peak) this.peak = this.inUse;
  }

  leave(): void {
    this.inUse -= 1;
  }

  /** True when there is nothing to tell the router. */
  isIdle(): boolean {
    return this.replicas.size === 0 && this.peak === 0 && this.inUse === 0;
  }

  /** What the gateway holds now, and starts a new period of measuring. At most one report is on its way at a time. */
  report(nowMs: number): LoanReport {
    if (nowMs >= this.validUntilMs) this.limitAll();
    this.sequence = Math.max(this.sequence + 1, nowMs);
    const wantedSlots = this.peak === 0 ? 0 : Math.ceil(this.peak * HEADROOM + Math.max(0, this.peak - this.peakBefore) * GROWTH_AHEAD) + HEADROOM_SLOTS;
    const replicas = [...this.replicas.values()].map(takeReport);
    for (const [replicaId, { slots, inFlight }] of this.replicas) if (slots === 0 && inFlight === 0) this.replicas.delete(replicaId);
    const { sequence, requests } = this;
    this.peakBefore = this.peak;
    this.peak = this.inUse;
    this.requests = 0;
    return { endpointId: this.endpointId, sequence, wantedSlots, requests, replicas };
  }

  /** The router's answer to the report that was made at `reportedAtMs`. True when slots are to be given back by another report. */
  apply(loans: readonly ReplicaLoan[], reportedAtMs: number): boolean {
    this.validUntilMs = reportedAtMs + LOAN_TTL_MS;
    const lent = new Map(loans.map((loan) => [loan.replicaId, loan]));
    let gaveUp = false;
    for (const replica of this.replicas.values()) {
      const slots = lent.get(replica.replicaId)?.slots ?? 0;
      if (slots < replica.slots) gaveUp = true;
      if (slots === 0) limit(replica);
    }
    for (const loan of loans) this.put(loan);
    this.candidates = [...this.replicas.values()].filter((replica) => replica.slots > 0);
    return gaveUp;
  }

  /** Requests wait at the router: no slot is filled any more. True when there is something to give back. */
  recall(): boolean {
    const held = this.candidates.length > 0;
    this.limitAll();
    return held;
  }

  /** Stops filling replicas that take no requests any more. */
  keepOnly(isServing: (replicaId: string) => boolean): void {
    for (const replica of this.candidates) if (!isServing(replica.replicaId)) limit(replica);
    this.candidates = this.candidates.filter((replica) => replica.slots > 0);
  }

  private limitAll(): void {
    for (const replica of this.replicas.values()) limit(replica);
    this.candidates = [];
  }

  private put(loan: ReplicaLoan): void {
    const { replicaId, modelVersionId, url, engine, servedModel, slots, tokens, kvTokens } = loan;
    const lease: Lease = { leaseId: `lent_${replicaId}`, endpointId: this.endpointId, replicaId, modelVersionId, url, engine, servedModel, expiresAtMs: this.validUntilMs, queuedMs: 0, coldStart: false };
    const known = this.replicas.get(replicaId);
    if (known === undefined) this.replicas.set(replicaId, { replicaId, slots, inFlight: 0, isHealthy: true, tokens, tokensInUse: 0, kvTokens, lease, ok: 0, failed: 0, failedLast: 0, timedOutLast: 0 });
    else Object.assign(known, { slots, tokens, kvTokens, lease, isHealthy: mayBeFilled(known) });
  }
}

function mayBeFilled({ failedLast, timedOutLast }: LentReplica): boolean {
  return failedLast < FAILURES_UNTIL_ASKED && timedOutLast === 0;
}

function limit(replica: LentReplica): void {
  replica.slots = 0;
  if (replica.tokens !== null) replica.tokens = 0;
}

function takeReport(replica: LentReplica): ReplicaReport {
  const { replicaId, slots, inFlight, tokens, tokensInUse, ok, failed, failedLast, timedOutLast } = replica;
  replica.ok = 0;
  replica.failed = 0;
  replica.failedLast = 0;
  replica.timedOutLast = 0;
  return { replicaId, slots, inUse: inFlight, tokens: tokens ?? 0, tokensInUse, ok, failed, failedLast, timedOutLast };
}
