import type { LoanReport, ReplicaLoan, ReplicaReport } from '@penstock/contract-commands';
import type { AdmissionEffect } from './admission-effect.js';
import type { AdmissionReplica, AdmissionState } from './admission-state.js';
import { abandonProbe, beginProbe, CIRCUIT_WINDOW, type ReplicaOutcome } from './circuit.js';
import { grantWaiting } from './grant.js';
import { judge } from './leases.js';
import { mayServe } from './may-serve.js';

/** How long lent slots stay with a gateway that is not heard. */
export const LOAN_TTL_MS = 5_000;
/** After a request had to wait, slots are given one by one for this long, so that one queue decides who is next. */
export const LEND_AFTER_QUEUE_MS = 1_000;
/** Gateways with loans of one endpoint. */
export const LOANS_MAX = 1_000;

/** Slots of one replica that one gateway may fill by itself. They count as in flight whether it does or not. */
export interface LentSlots {
  slots: number;
  tokens: number;
  /** How many of them it used when it reported last. */
  inUse: number;
  isProbe: boolean;
}

/** What one gateway holds of an endpoint ahead of its requests. */
export interface GatewayLoan {
  sequence: number;
  expiresAtMs: number;
  readonly replicas: Map<string, LentSlots>;
}

/**
 * Takes a gateway's report of what it holds, and answers with what it may hold from now on. A smaller number is a request to
 * give back: those slots stay counted until a later report says that they are no longer held, so a lost answer costs slots
 * for a while and never lends one twice. Undefined for a report that a newer one of the same gateway overtook.
 */
export function reportLoans(state: AdmissionState, gatewayId: string, report: LoanReport, nowMs: number): { readonly loans: readonly ReplicaLoan[]; readonly effects: AdmissionEffect[] } | undefined {
  const effects: AdmissionEffect[] = [];
  const loan = loanOf(state, gatewayId);
  if (loan === undefined) return { loans: [], effects };
  if (report.sequence <= loan.sequence) return undefined;
  loan.sequence = report.sequence;
  loan.expiresAtMs = nowMs + LOAN_TTL_MS;
  state.earliestLoanExpiryMs = Math.min(state.earliestLoanExpiryMs, loan.expiresAtMs);
  if (report.requests > 0) state.lastRequestAtMs = nowMs;
  takeBack(state, loan, report.replicas, nowMs, effects);
  grantWaiting(state, nowMs, effects);
  const mayLend = state.waiting.size === 0 && nowMs - state.lastQueuedAtMs >= LEND_AFTER_QUEUE_MS && state.settings.queueMax > 0;
  const loans = mayLend ? share(state, loan, report.wantedSlots, nowMs) : [];
  if (loan.replicas.size === 0 && report.wantedSlots === 0) state.loans.delete(gatewayId);
  return { loans, effects };
}

/** Ends the loans of gateways that were not heard in time. */
export function expireLoans(state: AdmissionState, nowMs: number): number {
  if (nowMs < state.earliestLoanExpiryMs) return 0;
  let expired = 0;
  state.earliestLoanExpiryMs = Infinity;
  for (const [gatewayId, loan] of state.loans) {
    if (loan.expiresAtMs > nowMs) {
      state.earliestLoanExpiryMs = Math.min(state.earliestLoanExpiryMs, loan.expiresAtMs);
      continue;
    }
    for (const [replicaId, lent] of loan.replicas) {
      expired += lent.slots;
      account(state.replicas.get(replicaId), lent, 0, 0);
      if (lent.isProbe) abandon(state.replicas.get(replicaId));
    }
    state.loans.delete(gatewayId);
  }
  return expired;
}

function loanOf(state: AdmissionState, gatewayId: string): GatewayLoan | undefined {
  const known = state.loans.get(gatewayId);
  if (known !== undefined) return known;
  if (state.loans.size >= LOANS_MAX) return undefined;
  const loan: GatewayLoan = { sequence: 0, expiresAtMs: 0, replicas: new Map() };
  state.loans.set(gatewayId, loan);
  return loan;
}

/** Brings the books in line with what the gateway says it holds. A loan that another owner gave is taken over as it is. */
function takeBack(state: AdmissionState, loan: GatewayLoan, reports: readonly ReplicaReport[], nowMs: number, effects: AdmissionEffect[]): void {
  const reported = new Map(reports.map((report) => [report.replicaId, report]));
  for (const replicaId of loan.replicas.keys()) if (!reported.has(replicaId)) reported.set(replicaId, { replicaId, slots: 0, inUse: 0, tokens: 0, tokensInUse: 0, ok: 0, failed: 0, failedLast: 0, timedOutLast: 0 });
  for (const [replicaId, report] of reported) {
    const replica = state.replicas.get(replicaId);
    if (replica === undefined) continue;
    const lent = loan.replicas.get(replicaId) ?? { slots: 0, tokens: 0, inUse: 0, isProbe: false };
    loan.replicas.set(replicaId, lent);
    judgeAll(state, replica, lent, report, nowMs, effects);
    lent.inUse = report.inUse;
    account(replica, lent, Math.max(report.slots, report.inUse), Math.max(report.tokens, report.tokensInUse));
    if (lent.slots > 0) continue;
    if (lent.isProbe) abandon(replica);
    loan.replicas.delete(replicaId);
  }
}

/** In the order that matters to a circuit: failures that were followed by successes, successes, failures since. */
function judgeAll(state: AdmissionState, replica: AdmissionReplica, lent: LentSlots, report: ReplicaReport, nowMs: number, effects: AdmissionEffect[]): void {
  const failedLast = Math.min(report.failedLast, report.failed, CIRCUIT_WINDOW);
  const failedBefore = Math.min(report.failed - Math.min(report.failedLast, report.failed), CIRCUIT_WINDOW);
  const last = report.timedOutLast > 0 ? 'engine-timed-out' : 'engine-failed';
  const outcomes = [...repeat('engine-failed', failedBefore), ...repeat('ok', Math.min(report.ok, CIRCUIT_WINDOW)), ...repeat(last, failedLast)];
  for (const outcome of outcomes) {
    judge(state, replica, lent.isProbe, outcome, nowMs, effects);
    lent.isProbe = false;
  }
}

function repeat(outcome: ReplicaOutcome, count: number): ReplicaOutcome[] {
  return Array<ReplicaOutcome>(count).fill(outcome);
}

/** What the gateway may hold from now on, by replica. */
function share(state: AdmissionState, loan: GatewayLoan, wantedSlots: number, nowMs: number): ReplicaLoan[] {
  const targets = new Map<AdmissionReplica, number>();
  let total = 0;
  let free = 0;
  for (const replica of state.serving) {
    const lent = loan.replicas.get(replica.replicaId)?.slots ?? 0;
    if (replica.circuit.phase === 'closed') {
      targets.set(replica, lent);
      total += lent;
      free += Math.max(0, replica.slots - replica.inFlight);
    } else if (lent === 0 && nowMs >= state.grantsFromMs && mayServe(replica, state.settings, nowMs) && replica.inFlight < replica.slots) {
      lendProbe(loan, replica);
      targets.set(replica, 1);
    }
  }
  // Not all at once: another gateway may ask a moment later.
  const grow = nowMs < state.grantsFromMs ? 0 : Math.min(Math.max(0, wantedSlots - total), Math.ceil(free / 2));
  for (let count = 0; count < grow; count += 1) raise(targets, loan);
  for (let count = total - wantedSlots; count > 0; count -= 1) lower(targets);
  return [...targets].flatMap(([replica, slots]) => (slots === 0 ? [] : [toLoan(loan, replica, slots)]));
}

function lendProbe(loan: GatewayLoan, replica: AdmissionReplica): void {
  replica.circuit = beginProbe(replica.circuit);
  const lent: LentSlots = { slots: 0, tokens: 0, inUse: 0, isProbe: true };
  loan.replicas.set(replica.replicaId, lent);
  account(replica, lent, 1, 0);
}

/** One more slot of the replica that has most of its slots free. */
function raise(targets: Map<AdmissionReplica, number>, loan: GatewayLoan): void {
  let best: AdmissionReplica | undefined;
  for (const replica of targets.keys()) {
    if (replica.circuit.phase !== 'closed' || replica.inFlight >= replica.slots) continue;
    if (best === undefined || (replica.slots - replica.inFlight) / replica.slots > (best.slots - best.inFlight) / best.slots) best = replica;
  }
  if (best === undefined) return;
  const lent = loan.replicas.get(best.replicaId) ?? { slots: 0, tokens: 0, inUse: 0, isProbe: false };
  loan.replicas.set(best.replicaId, lent);
  account(best, lent, lent.slots + 1, lent.tokens);
  targets.set(best, (targets.get(best) ?? 0) + 1);
}

/** One slot less of the replica that it holds most of. */
function lower(targets: Map<AdmissionReplica, number>): void {
  let most: AdmissionReplica | undefined;
  for (const [replica, slots] of targets) if (slots > 0 && (most === undefined || slots > (targets.get(most) ?? 0))) most = replica;
  if (most !== undefined) targets.set(most, (targets.get(most) ?? 1) - 1);
}

/** KV tokens go with the slots in proportion, as far as they are free. */
function toLoan(loan: GatewayLoan, replica: AdmissionReplica, slots: number): ReplicaLoan {
  const lent = loan.replicas.get(replica.replicaId);
  const { replicaId, modelVersionId, url, engine, servedModel } = replica.facts;
  let tokens: number | null = null;
  if (replica.kvTokens !== null && lent !== undefined) {
    const wanted = Math.floor((replica.kvTokens * slots) / replica.slots);
    tokens = Math.max(0, Math.min(wanted, lent.tokens + replica.kvTokens - replica.tokensInFlight));
    if (tokens > lent.tokens) account(replica, lent, lent.slots, tokens);
  }
  return { replicaId, modelVersionId, url, engine, servedModel, slots, tokens, kvTokens: replica.kvTokens };
}

function account(replica: AdmissionReplica | undefined, lent: LentSlots, slots: number, tokens: number): void {
  if (replica !== undefined) {
    replica.inFlight += slots - lent.slots;
    replica.tokensInFlight += tokens - lent.tokens;
  }
  lent.slots = slots;
  lent.tokens = tokens;
}

function abandon(replica: AdmissionReplica | undefined): void {
  if (replica !== undefined) replica.circuit = abandonProbe(replica.circuit);
}
