import type { Lease } from '@penstock/contract-commands';
import type { ChatChunk, RunningUsage } from '@penstock/domain-serving';
import type { Timers } from '@penstock/kernel';
import { nothingDelivered, type AttemptOutcome, type EngineAttempt } from './engine-attempt.js';

/** What takes the answer of an attempt. */
export interface AttemptSink {
  onChunks(chunks: readonly ChatChunk[]): boolean;
  onText(text: string): boolean;
}

export interface RaceHost extends AttemptSink {
  readonly timers: Timers;
  now(): number;
  makeAttempt(lease: Lease, sink: AttemptSink): EngineAttempt;
  run(attempt: EngineAttempt, lease: Lease): Promise<AttemptOutcome>;
  release(lease: Lease, outcome: AttemptOutcome): void;
  /** A slot elsewhere, at once; undefined when there is none or the second attempt is not within its budget. */
  second(firstReplicaId: string): Promise<Lease | undefined>;
  /** The first token came, so long after the first attempt was sent. */
  observe(ms: number): void;
  /** An attempt leads from here on: what it hands on is the answer. */
  leads(lease: Lease): void;
  /** A second attempt was sent, and which of the two led. */
  hedged(winner: 'first' | 'second', loserMs: number): void;
}

interface Entry {
  readonly lease: Lease;
  readonly sentAtMs: number;
  readonly attempt: EngineAttempt;
  engineMs: number | undefined;
}

/**
 * One attempt, and a second one elsewhere when the first token is late: the one whose token comes first is the answer, the other is
 * aborted at once. Nothing of the other reaches the client or its bill; the time that it held a slot is in the request's own.
 */
export class HedgeRace {
  private readonly entries: Entry[] = [];
  private leader: Entry | undefined;
  private lastEnded: { readonly outcome: AttemptOutcome; readonly lease: Lease } | undefined;
  private isSecondAsked = false;
  private isOver = false;
  private stopTimer: () => void = () => undefined;
  private settle: (end: { readonly outcome: AttemptOutcome; readonly lease: Lease }) => void = () => undefined;

  constructor(private readonly host: RaceHost, private readonly afterMs: number | undefined) {}

  /** Time that slots were held, of both attempts together. */
  get engineMs(): number {
    return this.entries.reduce((total, { engineMs, sentAtMs }) => total + (engineMs ?? this.host.now() - sentAtMs), 0);
  }

  run(lease: Lease): Promise<{ readonly outcome: AttemptOutcome; readonly lease: Lease }> {
    return new Promise((resolve) => {
      this.settle = resolve;
      this.enter(lease);
      if (this.afterMs !== undefined) this.stopTimer = this.host.timers.after(this.afterMs, () => void this.enterSecond(lease));
    });
  }

  usage(): RunningUsage {
    return this.leader?.attempt.usage() ?? nothingDelivered;
  }

  tick(nowMs: number): void {
    for (const { attempt } of this.entries) attempt.tick(nowMs);
  }

  resume(): void {
    this.leader?.attempt.resume();
  }

  abort(): void {
    for (const { attempt } of this.entries) attempt.abort();
  }

  private enter(lease: Lease): void {
    const { host } = this;
    const sink: AttemptSink = {
      onChunks: (chunks) => !this.takesLead(entry) || host.onChunks(chunks),
      onText: (text) => !this.takesLead(entry) || host.onText(text),
    };
    const entry: Entry = { lease, sentAtMs: host.now(), attempt: host.makeAttempt(lease, sink), engineMs: undefined };
    this.entries.push(entry);
    void host.run(entry.attempt, lease).then((outcome) => this.ended(entry, outcome));
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
  private takesLead(entry: Entry): boolean {
    if (this.leader !== undefined) return this.leader === entry;
    this.leader = entry;
    this.stopTimer();
    const { host } = this;
    const [first, second] = this.entries;
    host.observe(host.now() - (first ?? entry).sentAtMs);
    host.leads(entry.lease);
    if (second === undefined) return true;
    const loser = entry === first ? second : first ?? second;
    host.hedged(entry === first ? 'first' : 'second', loser.engineMs ?? host.now() - loser.sentAtMs);
    loser.attempt.abort();
    return true;
  }

  private ended(entry: Entry, outcome: AttemptOutcome): void {
    entry.engineMs = this.host.now() - entry.sentAtMs;
    this.host.release(entry.lease, outcome);
    this.lastEnded = { outcome, lease: entry.lease };
    if (outcome.kind === 'completed') this.takesLead(entry);
    if (this.leader === entry) this.finish(outcome, entry.lease);
    else this.finishWhenAllEnded();
  }

  /** Nobody led and nobody can any more: how the last one ended is how the request ended. */
  private finishWhenAllEnded(): void {
    if (this.leader !== undefined || this.isSecondAsked || this.lastEnded === undefined || this.entries.some(({ engineMs }) => engineMs === undefined)) return;
    this.finish(this.lastEnded.outcome, this.lastEnded.lease);
  }

  private finish(outcome: AttemptOutcome, lease: Lease): void {
    this.isOver = true;
    this.stopTimer();
    this.settle({ outcome, lease });
  }
}
