import type { Lease } from '@penstock/contract-commands';
import type { UsageRecordedV1 } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { noUsage, type RunningUsage } from '@penstock/domain-serving';
import { settleUsage, type UsageProgress } from '@penstock/domain-usage';
import type { ChatParts } from '../chat/chat-parts.js';
import { statusOf, type ClientAnswer } from '../chat/client-answer.js';
import type { WatchedExchange } from '../chat/exchange-watch.js';
import { secondsPerToken } from '../gateway-metrics.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWER_TOKENS_ASSUMED, CLIENT_GONE_STATUS, leaseOutcome, limitsOf, publicFault, shuttingDownFault } from '../frame/exchange-end.js';
import { keepAlive } from '../frame/keep-alive.js';
import type { ModelJob, UsageLedger } from '../frame/model-work.js';
import { tryReplicas, type Refused, type ReplicaUser } from '../frame/try-replicas.js';
import { EngineSession } from './engine-session.js';
import type { Operation, OperationOutcome } from './operation.js';

/** One request that was checked and may be worked on. */
export interface OperationJob extends ModelJob {
  /** For logs. */
  readonly name: string;
  readonly operation: Operation;
  readonly bodyBytes: number;
  readonly cacheSalt: string;
}

type CompletedOperation = Extract<OperationOutcome, { kind: 'completed' }>;
type ExchangeOutcome = OperationOutcome | Refused;
type Ending = UsageProgress & Pick<UsageRecordedV1, 'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated'>;

/** One operation from its admission to its record of usage. */
export class OperationExchange implements WatchedExchange, ReplicaUser<CompletedOperation> {
  private readonly gone = new AbortController();
  private session: EngineSession | undefined;
  private delivered: RunningUsage | undefined;
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;
  private firstByteAtMs: number | undefined;
  lastHeartbeatMs: number | undefined;
  lastTextMs: number | undefined;
  private stopFault: ApiFault | undefined;

  private readonly operation: Operation;

  constructor(private readonly parts: ChatParts, readonly job: OperationJob, private readonly ledger: UsageLedger | undefined, private readonly answer: ClientAnswer) {
    this.operation = job.operation;
  }

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
    this.session?.tick(nowMs);
    this.lastHeartbeatMs = keepAlive(this.parts, this.answer, this.job, nowMs, this.operation.isStreamed, this);
  }

  shutDown(): void {
    this.stopFault = shuttingDownFault;
    this.leave();
  }

  private leave(): void {
    this.gone.abort();
    this.session?.abort();
  }

  get promptTokensEstimate(): number {
    return this.operation.promptTokensEstimate;
  }

  get answerTokensMax(): number {
    return Math.min(this.operation.asked.completionTokensMax ?? ANSWER_TOKENS_ASSUMED, this.job.endpoint.serving.contextTokens);
  }

  get isGone(): boolean {
    return this.gone.signal.aborted;
  }

  get hasBegun(): boolean {
    return this.delivered !== undefined;
  }

  goneSignal(): AbortSignal {
    return this.gone.signal;
  }

  recorded(): Promise<void> | undefined {
    return this.ledger?.usage.written();
  }

  async work(lease: Lease): Promise<OperationOutcome> {
    const { parts, job } = this;
    this.lease = lease;
    this.queueMs += lease.queuedMs;
    const sentAtMs = parts.clock.now();
    const session = new EngineSession({
      lease, cacheSalt: job.cacheSalt, now: () => parts.clock.now(),
      headers: { 'content-type': 'application/json', 'accept-encoding': 'identity', 'x-request-id': job.requestId, ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent }) },
      limits: limitsOf(parts.config, job.endpoint),
      connections: parts.clients.get(lease.url),
      fresh: () => parts.clients.fresh(lease.url),
      onFrames: (frames, usage) => this.deliver(frames, usage),
      onBegun: () => this.begin(),
    });
    this.session = session;
    if (this.gone.signal.aborted) session.abort();
    let outcome: OperationOutcome = { kind: 'aborted' };
    try {
      outcome = await this.operation.perform(session);
      return outcome;
    } finally {
      this.session = undefined;
      this.engineMs += parts.clock.now() - sentAtMs;
      parts.leases.release(lease, leaseOutcome(outcome));
    }
  }

  private begin(): void {
    if (this.firstByteAtMs !== undefined) return;
    this.firstByteAtMs = this.parts.clock.now();
    if (this.operation.metered !== 'embeddings' && this.operation.metered !== null) this.parts.metrics.timeToFirstToken.observe({ model: this.job.endpoint.name }, (this.firstByteAtMs - this.job.startedAtMs) / 1_000);
  }

  /** What reached the client's socket is what the client pays for. */
  private deliver(frames: string, usage: RunningUsage): boolean {
    if (this.gone.signal.aborted) return true;
    const canTakeMore = this.answer.write(frames, () => this.session?.resume());
    this.delivered = usage;
    this.lastTextMs = this.parts.clock.now();
    this.ledger?.usage.progress(this.progressOf(usage));
    return canTakeMore;
  }

  private async conclude(outcome: ExchangeOutcome): Promise<void> {
    if (outcome.kind === 'completed' && !this.gone.signal.aborted) {
      if (this.lease !== undefined) this.parts.desk.answered(this.lease, this.job.prompt, outcome.usage);
      // The record is safe before the client can see the end, so no answer is complete without its usage.
      this.settle({ ...this.progressOf(outcome.usage), status: 'completed', finishReason: outcome.finishReason, httpStatus: 200, errorCode: null, tokensEstimated: !outcome.usage.known });
      await this.ledger?.usage.written().catch(() => undefined);
      if (this.operation.isStreamed) this.answer.endStream(outcome.answer, this.operation.terminator);
      else this.answer.sendJson(outcome.answer);
    } else if (outcome.kind === 'failed' || outcome.kind === 'refused') {
      this.fail(outcome.kind === 'refused' ? outcome.fault : publicFault(outcome.fault, this.lease?.servedModel, this.job.endpoint.name));
    } else if (this.stopFault !== undefined) {
      this.fail(this.stopFault);
    } else {
      this.settle({ ...this.progressOf(this.delivered ?? noUsage), status: 'aborted', finishReason: null, httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected', tokensEstimated: true });
    }
  }

  private fail(fault: ApiFault): void {
    this.settle({ ...this.progressOf(this.delivered ?? noUsage), status: 'failed', finishReason: null, httpStatus: statusOf(fault), errorCode: fault.code, tokensEstimated: this.delivered !== undefined });
    if (!this.answer.hasStarted) throw new RequestFault(fault);
    this.answer.failStream(fault, this.operation.failureFrames(fault));
  }

  private progressOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: RunningUsage): UsageProgress {
    return { replicaId: this.lease?.replicaId ?? null, promptTokens, cachedTokens, completionTokens, reasoningTokens };
  }

  private settle(end: Ending): void {
    const { parts, job, operation, ledger, queueMs } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const ttftMs = this.firstByteAtMs === undefined ? null : this.firstByteAtMs - job.startedAtMs;
    const { requestId, endpoint: { endpointId, name: modelName }, principal: { organisationId } } = job;
    const metrics = parts.metrics.ofModel(modelName);
    if (ledger !== undefined) {
      const record = settleUsage(ledger.draft, { ...end, modelVersionId: this.lease?.modelVersionId, queueMs, ttftMs, durationMs, engineMs: this.engineMs });
      void ledger.usage.settle(record);
      metrics.promptTokens.inc(record.promptTokens);
      metrics.completionTokens.inc(record.completionTokens);
    }
    metrics.ended(end.errorCode ?? end.status);
    const perToken = operation.isStreamed && end.status === 'completed' ? secondsPerToken({ durationMs, ttftMs, completionTokens: end.completionTokens }) : undefined;
    if (perToken !== undefined) metrics.timePerToken.observe(perToken);
    metrics.duration.observe(durationMs / 1_000);
    // A request that went well is in the log of events with all of this.
    parts.logger[end.status === 'completed' && ledger !== undefined ? 'debug' : 'info']({ requestId, organisationId, endpointId, modelName, operation: job.name, stream: operation.isStreamed, ...end, queueMs, ttftMs, durationMs }, 'model request');
  }
}
