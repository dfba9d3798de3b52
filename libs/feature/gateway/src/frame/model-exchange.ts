import type { Lease } from '@penstock/contract-commands';
import type { ApiFault } from '@penstock/contract-http';
import type { UsageRecord } from '@penstock/contract-events';
import { noUsage, type RunningUsage } from '@penstock/domain-serving';
import { settleUsage, type UsageProgress } from '@penstock/domain-usage';
import type { ChatParts } from '../chat/chat-parts.js';
import { statusOf, type ClientAnswer } from '../chat/client-answer.js';
import type { WatchedExchange } from '../chat/exchange-watch.js';
import { secondsPerToken } from '../gateway-metrics.js';
import { RequestFault } from '../http/request-fault.js';
import { CLIENT_GONE_STATUS, leaseOutcome, shuttingDownFault, textFault } from './exchange-end.js';
import type { Awaited } from './hedge-policy.js';
import { HedgeRace, type Attempt } from './hedge-race.js';
import { keepAlive } from './keep-alive.js';
import type { ModelJob, UsageLedger } from './model-work.js';
import { admissionOf, tryReplicas, type Aborted, type Failed, type Refused, type ReplicaUser } from './try-replicas.js';

/** An answer that is complete, but for its end on the way to the client. */
export interface CompletedWork {
  readonly kind: 'completed';
  readonly usage: RunningUsage;
  readonly finishReason: string | null;
}

type Ending = Pick<UsageRecord, 'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated'>;

const ignore = (): undefined => undefined;

/** One request to a model of text from its admission to its record of usage; the kinds of request say how an engine is asked and how the client is answered. */
export abstract class ModelExchange<Job extends ModelJob, Done extends CompletedWork, Try extends Attempt> implements WatchedExchange, ReplicaUser<Done> {
  /** What reached the client's socket, which is what the client pays for. */
  protected delivered: RunningUsage = noUsage;
  /** The attempt whose answer is handed on. */
  protected attempt: Try | undefined;
  protected firstTokenAtMs: number | undefined;
  private race: HedgeRace<Try, Done> | undefined;
  private gone: AbortController | undefined;
  private hasLeft = false;
  private hasHedged = false;
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;
  lastHeartbeatMs: number | undefined;
  /** When something of a stream was sent last. */
  lastTextMs: number | undefined;
  private stopFault: ApiFault | undefined;
  protected readonly onDrain = (): void => this.attempt?.resume();

  constructor(protected readonly parts: ChatParts, readonly job: Job, protected readonly ledger: UsageLedger | undefined, protected readonly answer: ClientAnswer) {}

  /** For logs. */
  protected abstract readonly name: string;
  abstract get promptTokensEstimate(): number;
  abstract get answerTokensMax(): number;
  abstract get hasBegun(): boolean;
  /** Whether the engine of the lease is asked for a stream, whatever the client asked for. */
  protected abstract asksForStream(lease: Lease): boolean;
  /** Not sent yet. While another attempt runs as well, `takesLead` says of each piece of the answer whether it is to be handed on. */
  protected abstract makeAttempt(lease: Lease, takesLead: (() => boolean) | undefined): Try;
  protected abstract runAttempt(attempt: Try): Promise<Done | Failed | Aborted>;
  /** Sends the end of an answer to the client. */
  protected abstract finish(done: Done): void;
  /** Ends a stream that has begun with an error. */
  protected abstract failStream(fault: ApiFault): void;
  /** The attempt that led is over; what it handed on was delivered. */
  protected noteDelivered(): void {}

  /** Answers the client. Throws a {@link RequestFault} when nothing was sent yet and an error answer is due. */
  async run(): Promise<void> {
    this.answer.onGone(() => this.leave());
    this.parts.watch.add(this);
    this.parts.retries.of(this.job.endpoint.endpointId).countRequest();
    try {
      if (this.answer.isGone) this.leave();
      await this.conclude(await tryReplicas(this.parts, this));
    } finally {
      this.parts.watch.remove(this);
    }
  }

  tick(nowMs: number): void {
    (this.race ?? this.attempt)?.tick(nowMs);
    this.lastHeartbeatMs = keepAlive(this.parts, this.answer, this.job, nowMs, this.job.isStreamed, this);
  }

  shutDown(): void {
    this.stopFault = shuttingDownFault;
    this.leave();
  }

  private leave(): void {
    this.hasLeft = true;
    this.gone?.abort();
    (this.race ?? this.attempt)?.abort();
  }

  get isGone(): boolean {
    return this.hasLeft;
  }

  get isSpent(): boolean {
    return this.hasHedged;
  }

  goneSignal(): AbortSignal {
    this.gone ??= new AbortController();
    if (this.hasLeft) this.gone.abort();
    return this.gone.signal;
  }

  recorded(): Promise<void> | undefined {
    return this.ledger?.usage.written();
  }

  async work(lease: Lease): Promise<Done | Failed | Aborted> {
    const { parts, job } = this;
    this.lease = lease;
    this.queueMs += lease.queuedMs;
    if (this.hasLeft) {
      parts.leases.release(lease, 'aborted');
      return { kind: 'aborted' };
    }
    if (job.metered !== null && parts.hedges.isOn(job.endpoint)) return this.runRace(lease, this.asksForStream(lease) ? 'first-token' : job.metered);
    const sentAtMs = parts.clock.now();
    const attempt = this.makeAttempt(lease, undefined);
    this.attempt = attempt;
    let outcome: Done | Failed | Aborted | undefined;
    try {
      outcome = await this.runAttempt(attempt);
      return outcome;
    } finally {
      this.attemptsEnded(outcome, parts.clock.now() - sentAtMs);
      parts.leases.release(lease, outcome === undefined ? 'aborted' : leaseOutcome(outcome));
    }
  }

  private attemptsEnded(outcome: Done | Failed | Aborted | undefined, engineMs: number): void {
    if (outcome?.kind !== 'completed') this.noteDelivered();
    this.attempt = undefined;
    this.engineMs += engineMs;
  }

  /** Goes on at a second replica where what is awaited of the first one is late. */
  private async runRace(first: Lease, awaited: Awaited): Promise<Done | Failed | Aborted> {
    const { parts, job: { requestId, endpoint: { endpointId } } } = this;
    const race = new HedgeRace<Try, Done>({
      timers: parts.timers,
      now: () => parts.clock.now(),
      makeAttempt: (lease, takesLead) => this.makeAttempt(lease, takesLead),
      run: (attempt) => this.runAttempt(attempt),
      release: (lease, outcome) => parts.leases.release(lease, leaseOutcome(outcome)),
      second: (replicaId) => this.secondSlot(replicaId),
      observe: (ms) => parts.hedges.observe(endpointId, awaited, ms),
      leads: (attempt, lease) => {
        this.attempt = attempt;
        this.lease = lease;
      },
      hedged: (hedge) => {
        this.hasHedged = true;
        parts.hedged.note(requestId, hedge);
        parts.metrics.hedges.inc({ winner: hedge.winner });
        parts.metrics.hedgeLoserSeconds.inc(hedge.loserMs / 1_000);
        parts.logger.info({ requestId, endpointId, awaited, ...hedge }, 'the answer was late, so a second replica was asked');
      },
    }, parts.hedges.begin(endpointId, awaited, { promptTokens: this.promptTokensEstimate, answerTokens: awaited === 'first-token' ? 0 : this.answerTokensMax }));
    this.race = race;
    let outcome: Done | Failed | Aborted | undefined;
    try {
      const end = await race.run(first);
      ({ outcome } = end);
      this.lease = end.lease;
      return outcome;
    } finally {
      this.race = undefined;
      this.attemptsEnded(outcome, race.engineMs);
    }
  }

  /** A slot for a second attempt: never one that has to be waited for. */
  private async secondSlot(firstReplicaId: string): Promise<Lease | undefined> {
    const { parts, job: { endpoint: { endpointId } } } = this;
    if (this.hasLeft || !parts.hedges.mayHedge(endpointId)) return undefined;
    const asked = admissionOf(this, [firstReplicaId], 0);
    const admission = parts.desk.admitAtOnce(asked) ?? (await parts.desk.admit(asked));
    return admission.kind === 'granted' ? admission.lease : undefined;
  }

  protected noteFirstToken(): void {
    if (this.firstTokenAtMs !== undefined) return;
    const { job: { metered, endpoint, startedAtMs }, parts } = this;
    this.firstTokenAtMs = parts.clock.now();
    if (metered !== 'embeddings' && metered !== null) parts.metrics.ofModel(endpoint).timeToFirstToken.observe((this.firstTokenAtMs - startedAtMs) / 1_000);
  }

  private async conclude(outcome: Done | Failed | Aborted | Refused): Promise<void> {
    if (outcome.kind === 'completed' && !this.hasLeft) {
      await this.complete(outcome);
    } else if (outcome.kind === 'failed' || outcome.kind === 'refused') {
      this.fail(outcome.kind === 'refused' ? outcome.fault : textFault(outcome.fault, this.lease, this.job.endpoint));
    } else if (this.stopFault !== undefined) {
      this.fail(this.stopFault);
    } else {
      this.settle(this.delivered, { status: 'aborted', finishReason: null, httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected', tokensEstimated: true });
    }
  }

  private async complete(done: Done): Promise<void> {
    const { usage } = done;
    if (this.lease !== undefined) this.parts.desk.answered(this.lease, this.job.prompt, usage);
    // The record is safe before the client can see the end, so no answer is complete without its usage.
    this.settle(usage, { status: 'completed', finishReason: done.finishReason, httpStatus: 200, errorCode: null, tokensEstimated: !usage.known });
    await this.ledger?.usage.written().catch(ignore);
    this.finish(done);
  }

  private fail(fault: ApiFault): void {
    this.settle(this.delivered, { status: 'failed', finishReason: null, httpStatus: statusOf(fault), errorCode: fault.code, tokensEstimated: this.delivered !== noUsage });
    if (!this.answer.hasStarted) throw new RequestFault(fault);
    this.failStream(fault);
  }

  protected progress({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: RunningUsage): UsageProgress {
    return { replicaId: this.lease?.replicaId ?? null, promptTokens, cachedTokens, completionTokens, reasoningTokens };
  }

  private settle(usage: RunningUsage, end: Ending): void {
    const { parts, job, ledger, queueMs } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const ttftMs = this.firstTokenAtMs === undefined ? null : this.firstTokenAtMs - job.startedAtMs;
    const { status, finishReason, httpStatus, errorCode, tokensEstimated } = end;
    const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
    const { requestId, principal: { organisationId }, endpoint: { endpointId, name: modelName } } = job;
    const replicaId = this.lease?.replicaId ?? null;
    const metrics = parts.metrics.ofModel(job.endpoint);
    metrics.ended(errorCode ?? status);
    const perToken = job.isStreamed && status === 'completed' ? secondsPerToken({ durationMs, ttftMs, completionTokens }) : undefined;
    if (perToken !== undefined) metrics.timePerToken.observe(perToken);
    metrics.duration.observe(durationMs / 1_000);
    if (ledger !== undefined) {
      const record = settleUsage(ledger.draft, {
        replicaId, promptTokens, cachedTokens, completionTokens, reasoningTokens, status, finishReason, httpStatus, errorCode, tokensEstimated,
        modelVersionId: this.lease?.modelVersionId, queueMs, ttftMs, durationMs, engineMs: this.engineMs,
      });
      void ledger.usage.settle(record);
      metrics.promptTokens.inc(record.promptTokens);
      metrics.completionTokens.inc(record.completionTokens);
      metrics.cachedTokens.inc(record.cachedTokens);
      if (status === 'completed') metrics.promptLength.observe(record.promptTokens);
    }
    // A request that went well is in the log of events with all of this.
    parts.logger[status === 'completed' && ledger !== undefined ? 'debug' : 'info']({ requestId, organisationId, endpointId, modelName, operation: this.name, replicaId, stream: job.isStreamed, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs, ttftMs, durationMs }, 'model request');
  }
}
