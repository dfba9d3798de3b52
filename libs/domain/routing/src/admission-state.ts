import type { Lease } from '@penstock/contract-commands';
import { AdapterBeliefs } from './adapter-beliefs.js';
import type { Circuit } from './circuit.js';
import { FairOrder } from './fair-order.js';
import type { GatewayLoan } from './loans.js';
import type { ReplicaCandidate } from './pick-replica.js';
import type { PriorityClass } from './priority.js';
import type { PromptTrail } from './prompt-trail.js';
import { RoutingMemory } from './routing-memory.js';

export interface AdmissionSettings {
  readonly endpointId: string;
  /** Requests that may wait; one more is refused. */
  readonly queueMax: number;
  /** How long a request may wait while replicas are ready. A cold start does not count. */
  readonly queueWaitMsMax: number;
  /** How long a lease lives without being renewed. */
  readonly leaseTtlMs: number;
  /** Replicas with an open circuit are probed by the router itself; otherwise the next request is the probe. */
  readonly probesApart?: boolean;
}

/** What the fleet says about one replica that serves. */
export interface ServingReplica {
  readonly replicaId: string;
  readonly modelVersionId: string;
  readonly url: string;
  readonly engine: Lease['engine'];
  readonly servedModel: string;
  readonly slots: number;
  /** Tokens that its KV cache holds; null or left out when that is not known. */
  readonly kvTokens?: number | null;
  /** Tokens of its context; null or left out unless replicas of the endpoint take more. */
  readonly contextTokens?: number | null;
}

/** A replica with what the owner of the endpoint knows about it. */
export interface AdmissionReplica extends ReplicaCandidate {
  facts: ServingReplica;
  slots: number;
  /** Slots that are held or lent. */
  inFlight: number;
  kvTokens: number | null;
  /** Tokens of the KV cache that are held or lent. */
  tokensInFlight: number;
  longInFlight: number;
  contextTokens: number | null;
  isHealthy: boolean;
  circuit: Circuit;
  /** False while it drains: its leases go on, it gets no new ones. */
  isServing: boolean;
}

export interface AdmissionRequest {
  readonly requestId: string;
  /** The id of the lease that a grant will carry; fresh for each admission. */
  readonly leaseId: string;
  readonly gatewayId: string;
  /** The tenant. */
  readonly organisationId: string;
  /** Replicas that already failed this request. */
  readonly excludedReplicaIds: readonly string[];
  /** How long the caller waits at most, through a cold start too. */
  readonly waitMsMax: number;
  /** Default: `paid`. */
  readonly priority?: PriorityClass;
  /** Its tenant's share against others of the same class. Default: 1. */
  readonly weight?: number;
  /** Tokens that it may need, its answer included. Default: 0. */
  readonly workTokens?: number;
  /** What is known of its prompt. */
  readonly prompt?: PromptTrail | undefined;
  /** The adapter that it names. */
  readonly adapter?: string | undefined;
}

/** A request in the queue. */
export interface Waiter extends AdmissionRequest {
  readonly enqueuedAtMs: number;
  /** When the caller stops waiting. */
  readonly latestMs: number;
  /** When the queue's own time limit began to run; null while no replica is ready. */
  queueClockMs: number | null;
  /** True once it waited without any ready replica. */
  metColdStart: boolean;
  /** Failed starts of the endpoint that were known when it came. */
  readonly failedStartsBefore: number;
  readonly rank: number;
  readonly weight: number;
  readonly workTokens: number;
  startTag: number;
  sequence: number;
}

export interface HeldLease {
  readonly lease: Lease;
  /** Null for a lease that another owner granted and that became known by its renewal. */
  readonly requestId: string | null;
  readonly gatewayId: string;
  readonly grantedAtMs: number;
  readonly isProbe: boolean;
  readonly workTokens: number;
  readonly isLong: boolean;
  expiresAtMs: number;
}

/** What stands in the way of a start, as the fleet's events tell it. */
export interface StartTrouble {
  /** A replica is on its way to ready. */
  readonly isStarting: boolean;
  /** Why nothing can be placed; null when nothing was refused since the last placement. */
  readonly placementRefusal: string | null;
  /** Starts that failed, as far as they are remembered; only grows while requests wait. */
  readonly failedStarts: number;
  /** Starts that failed since the last one that became ready. */
  readonly failedStartsInARow: number;
  readonly lastFailure: string | null;
}

export const noStartTrouble: StartTrouble = { isStarting: false, placementRefusal: null, failedStarts: 0, failedStartsInARow: 0, lastFailure: null };

/** Assumed until requests were seen to end. */
export const MEAN_SERVICE_MS_AT_START = 2_000;

/**
 * Everything the owner of one endpoint knows about its queue, its leases and its replicas. The functions of this library
 * change it in place and return what follows as effects; they read no clock and do no I/O, so the same calls give the same effects.
 */
export interface AdmissionState {
  settings: AdmissionSettings;
  readonly replicas: Map<string, AdmissionReplica>;
  /** Those of `replicas` that take requests, in the order they became known. */
  serving: AdmissionReplica[];
  readonly leases: Map<string, HeldLease>;
  /** By request id, oldest first. */
  readonly waiting: Map<string, Waiter>;
  /** The same requests in the order in which they get slots. */
  readonly order: FairOrder<Waiter>;
  readonly waitingByTenant: Map<string, number>;
  /** Slots that gateways hold ahead of their requests, by gateway. */
  readonly loans: Map<string, GatewayLoan>;
  /** When a request waited last; nothing is lent shortly after. */
  lastQueuedAtMs: number;
  /** No loan expires before this time. */
  earliestLoanExpiryMs: number;
  /** What the requests so far taught about the replicas. */
  readonly memory: RoutingMemory;
  /** What is known of the replicas' adapters. */
  readonly adapters: AdapterBeliefs;
  /** Leases that were given back lately: a renewal that arrives late must not bring them back. */
  readonly releasedLately: Set<string>;
  /** No grants before this time: a new owner first learns from renewals what is in flight. */
  readonly grantsFromMs: number;
  rotation: number;
  /** Refusals with a hint when to come back. */
  refusals: number;
  wakeRequested: boolean;
  startTrouble: StartTrouble;
  meanServiceMs: number;
  lastRequestAtMs: number | null;
  /** No lease expires before this time. */
  earliestExpiryMs: number;
  /** No waiting request is overdue before this time. */
  earliestDueMs: number;
}

export function createAdmissionState(settings: AdmissionSettings, grantsFromMs: number, memory = new RoutingMemory(), adapters = new AdapterBeliefs()): AdmissionState {
  return {
    settings,
    replicas: new Map(),
    serving: [],
    leases: new Map(),
    waiting: new Map(),
    order: new FairOrder(),
    waitingByTenant: new Map(),
    loans: new Map(),
    lastQueuedAtMs: -Infinity,
    earliestLoanExpiryMs: Infinity,
    memory,
    adapters,
    releasedLately: new Set(),
    grantsFromMs,
    rotation: 0,
    refusals: 0,
    wakeRequested: false,
    startTrouble: noStartTrouble,
    meanServiceMs: MEAN_SERVICE_MS_AT_START,
    lastRequestAtMs: null,
    earliestExpiryMs: Infinity,
    earliestDueMs: Infinity,
  };
}

/** True when no replica takes requests: whoever waits, waits for a start. */
export function isCold(state: AdmissionState): boolean {
  return state.serving.length === 0;
}

/** True while somebody waits at an endpoint without a ready replica. */
export function needsWake(state: AdmissionState): boolean {
  return isCold(state) && state.waiting.size > 0;
}

/** Slots of all replicas that take requests. */
export function slotsOf(state: AdmissionState): number {
  let slots = 0;
  for (const replica of state.serving) slots += replica.slots;
  return slots;
}

/** Slots in use: those of leases, and those of loans as far as the gateways use them. */
export function runningOf(state: AdmissionState): number {
  let running = state.leases.size;
  for (const loan of state.loans.values()) for (const lent of loan.replicas.values()) running += lent.inUse;
  return running;
}
