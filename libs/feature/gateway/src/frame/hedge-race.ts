import type { Lease } from '@penstock/contract-commands';
import type { Timers } from '@penstock/kernel';
import type { Aborted, Failed } from './try-replicas.js';

/** What works on a request at one replica. */
export interface Attempt {
  /** Looks at its time limits. */
  tick(nowMs: number): void;
  /** The client can take more. */
  resume(): void;
  abort(): void;
}

export interface RaceHost<Try extends Attempt, Done extends { readonly kind: 'completed' }> {
  readonly timers: Timers;
  now(): number;
  /** `takesLead` is asked before anything of its answer is handed on. */
  makeAttempt(lease: Lease, takesLead: () => boolean): Try;
  run(attempt: Try): Promise<Done | Failed | Aborted>;
  release(lease: Lease, outcome: Done | Failed | Aborted): void;
  /** A slot elsewhere, at once; undefined when there is none or the second attempt is not within its budget. */
  second(firstReplicaId: string): Promise<Lease | undefined>;
  /** What was waited for came, so long after the first attempt was sent. */
  observe(ms: number): void;
  /** An attempt leads from here on: what it hands on is the answer. */
  leads(attempt: Try, lease: Lease): void;
  /** A second attempt was sent, and how that came out. */
  hedged(hedge: Hedge): void;
}

/** How a second attempt came out: which of the two was the answer, or that neither was. */
export interface Hedge {
  readonly winner: 'first' | 'second' | 'none';
  readonly replicaIds: readonly [first: string, second: string];
  /** How long after the first attempt the second one was sent, in milliseconds. */
  readonly afterMs: number;
  /** How long slots were held whose answer was not used, in milliseconds. */
  readonly loserMs: number;
}

interface Entry<Try> {
  readonly lease: Lease;
  readonly sentAtMs: number;
  readonly attempt: Try;
  engineMs: number | undefined;
}

interface RaceEnd<Outcome> {
  readonly outcome: Outcome;
  readonly lease: Lease;
}

/**
 * One attempt, and a second one elsewhere when the first token is late, or the answer where it comes whole: the one from which that comes
 * first is the answer, the other is aborted at once. Nothing of the other reaches the client or its bill; the time that it held a slot is in the request's own.
 */
export class HedgeRace<Try extends Attempt, Done extends { readonly kind: 'completed' }> {
  private readonly entries: Entry<Try>[] = [];
  private leader: Entry<Try> | undefined;
  private lastEnded: RaceEnd<Done | Failed | Aborted> | undefined;
  private isSecondAsked = false;
  private isOver = false;
  private stopTimer: () => void = () => undefined;
  private settle: (end: RaceEnd<Done | Failed | Aborted>) => void = () => undefined;
  private reject: (error: unknown) => void = () => undefined;

  constructor(private readonly host: RaceHost<Try, Done>, private readonly afterMs: number | undefined) {}

  /** Time that slots were held, of both attempts together. */
  get engineMs(): number {
    return this.entries.reduce((total, { engineMs, sentAtMs }) => total + (engineMs ?? this.host.now() - sentAtMs), 0);
  }

  run(lease: Lease): Promise<RaceEnd<Done | Failed | Aborted>> {
    return new Promise((resolve, reject) => {
      this.settle = resolve;
      this.reject = reject;
      this.enter(lease);
      if (this.afterMs !== undefined) this.stopTimer = this.host.timers.after(this.afterMs, () => void this.enterSecond(lease));
    });
  }

  tick(nowMs: number): void {
    for (const { attempt } of this.entries) attempt.tick(nowMs);
  }

  abort(): void {
    for (const { attempt } of this.entries) attempt.abort();
  }

  private enter(lease: Lease): void {
    const { host } = this;
    const entry: Entry<Try> = { lease, sentAtMs: host.now(), attempt: host.makeAttempt(lease, () => this.takesLead(entry)), engineMs: undefined };
    this.entries.push(entry);
    host.run(entry.attempt).then((outcome) => this.ended(entry, outcome), (error: unknown) => this.broke(entry, error));
  }

  private async enterSecond({ replicaId }: Lease): Promise<void> {
    this.isSecondAsked = true;
    const lease = await this.host.second(replicaId).catch(() => undefined);
    this.isSecondAsked = false;
    if (lease !== undefined && !this.isOver && this.leader === undefined) {
      this.enter(lease);
      return;
    }
    if (lease !== undefined) this.host.release(lease, { kind: 'aborted' });
    this.finishWhenAllEnded();
  }

  /** True while what the entry hands on is the answer. */
  private takesLead(entry: Entry<Try>): boolean {
    if (this.leader !== undefined) return this.leader === entry;
    if (this.isOver) return false;
    this.host.observe(this.host.now() - (this.entries[0] ?? entry).sentAtMs);
    this.lead(entry);
    return true;
  }

  private lead(entry: Entry<Try>): void {
    this.leader = entry;
    this.stopTimer();
    const { host, entries: [first, second] } = this;
    host.leads(entry.attempt, entry.lease);
    if (first === undefined || second === undefined) return;
    const loser = entry === first ? second : first;
    this.tell(entry === first ? 'first' : 'second', loser.engineMs ?? host.now() - loser.sentAtMs);
    loser.attempt.abort();
  }

  private tell(winner: Hedge['winner'], loserMs: number): void {
    const { host, entries: [first, second] } = this;
    if (first === undefined || second === undefined) return;
    host.hedged({ winner, replicaIds: [first.lease.replicaId, second.lease.replicaId], afterMs: second.sentAtMs - first.sentAtMs, loserMs });
  }

  private ended(entry: Entry<Try>, outcome: Done | Failed | Aborted): void {
    this.release(entry, outcome);
    this.lastEnded = { outcome, lease: entry.lease };
    if (outcome.kind === 'completed') this.takesLead(entry);
    // A request that is at fault itself is so everywhere.
    else if (outcome.kind === 'failed' && !outcome.fault.retryElsewhere && this.leader === undefined && !this.isOver) this.lead(entry);
    if (this.leader === entry) this.finish(outcome, entry.lease);
    else this.finishWhenAllEnded();
  }

  /** An error of our own. */
  private broke(entry: Entry<Try>, error: unknown): void {
    this.release(entry, { kind: 'aborted' });
    this.isOver = true;
    this.stopTimer();
    this.abort();
    this.reject(error);
  }

  private release(entry: Entry<Try>, outcome: Done | Failed | Aborted): void {
    entry.engineMs = this.host.now() - entry.sentAtMs;
    this.host.release(entry.lease, outcome);
  }

  /** Nobody led and nobody can any more: how the last one ended is how the request ended. */
  private finishWhenAllEnded(): void {
    if (this.leader !== undefined || this.isSecondAsked || this.lastEnded === undefined || this.entries.some(({ engineMs }) => engineMs === undefined)) return;
    this.tell('none', this.engineMs);
    this.finish(this.lastEnded.outcome, this.lastEnded.lease);
  }

  private finish(outcome: Done | Failed | Aborted, lease: Lease): void {
    this.isOver = true;
    this.stopTimer();
    this.settle({ outcome, lease });
  }
}
