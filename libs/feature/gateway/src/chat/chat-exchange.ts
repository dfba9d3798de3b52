import type { Lease } from '@penstock/contract-commands';
import type { ApiFault, ChatCompletionRequest } from '@penstock/contract-http';
import type { UsageRecordedV1 } from '@penstock/contract-events';
import { ChatJoiner, dialectOf, estimatePromptTokens, toEngineRequest, type AnswerIdentity, type ChatChunk, type RunningUsage } from '@penstock/domain-serving';
import { settleUsage, type OpenUsage, type UsageDraft, type UsageProgress } from '@penstock/domain-usage';
import { secondsPerToken } from '../gateway-metrics.js';
import { RequestFault } from '../http/request-fault.js';
import { ANSWER_TOKENS_ASSUMED, CLIENT_GONE_STATUS, leaseOutcome, limitsOf, publicFault, shuttingDownFault } from '../frame/exchange-end.js';
import { keepAlive } from '../frame/keep-alive.js';
import { admissionOf, tryReplicas, type Refused, type ReplicaUser } from '../frame/try-replicas.js';
import type { ChatJob, ChatParts } from './chat-parts.js';
import { statusOf, type ClientAnswer } from './client-answer.js';
import { EngineAttempt, nothingDelivered, type AttemptOutcome } from './engine-attempt.js';
import type { WatchedExchange } from './exchange-watch.js';
import { HedgeRace, type AttemptSink } from './hedge-race.js';

/** How often the progress of a stream is noted; a killed gateway forgets at most so much of it. */
const PROGRESS_INTERVAL_MS = 100;
type CompletedAttempt = Extract<AttemptOutcome, { kind: 'completed' }>;
type ExchangeOutcome = AttemptOutcome | Refused;

/** One chat request from its admission to its record of usage. */
export class ChatExchange implements WatchedExchange, AttemptSink, ReplicaUser<CompletedAttempt> {
  private readonly identity: AnswerIdentity;
  private readonly joiner: ChatJoiner | undefined;
  private gone: AbortController | undefined;
  private hasLeft = false;
  private progressNotedMs = 0;
  private attempt: EngineAttempt | HedgeRace | undefined;
  private delivered: RunningUsage = nothingDelivered;
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;
  private firstTokenAtMs: number | undefined;
  lastHeartbeatMs: number | undefined;
  lastTextMs: number | undefined;
  private stopFault: ApiFault | undefined;
  private hasDelivered = false;
  private readonly onDrain = (): void => this.attempt?.resume();

  constructor(private readonly parts: ChatParts, readonly job: ChatJob, private readonly draft: UsageDraft, private readonly usage: OpenUsage, private readonly answer: ClientAnswer) {
    this.identity = { id: `chatcmpl-${job.requestId.replace(/^req_/, '')}`, created: Math.floor(job.startedAtMs / 1_000), model: job.endpoint.name };
    this.joiner = this.isStreamed ? undefined : new ChatJoiner();
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
    this.attempt?.tick(nowMs);
    this.lastHeartbeatMs = keepAlive(this.parts, this.answer, this.job, nowMs, this.isStreamed, this);
  }

  shutDown(): void {
    this.stopFault = shuttingDownFault;
    this.leave();
  }

  private get isStreamed(): boolean {
    return this.job.request.stream === true;
  }

  private leave(): void {
    this.hasLeft = true;
    this.gone?.abort();
    this.attempt?.abort();
  }

  get isGone(): boolean {
    return this.hasLeft;
  }

  get hasBegun(): boolean {
    return this.firstTokenAtMs !== undefined;
  }

  recorded(): Promise<void> {
    return this.usage.written();
  }

  get promptTokensEstimate(): number {
    return estimatePromptTokens(this.job.document.text.length);
  }

  /** Over all choices. */
  get answerTokensMax(): number {
    const { request, endpoint } = this.job;
    return Math.min(request.max_completion_tokens ?? request.max_tokens ?? ANSWER_TOKENS_ASSUMED, endpoint.serving.contextTokens) * (request.n ?? 1);
  }

  async work(lease: Lease): Promise<AttemptOutcome> {
    const { parts, job } = this;
    this.lease = lease;
    this.queueMs += lease.queuedMs;
    if (this.isGone) {
      parts.leases.release(lease, 'aborted');
      return { kind: 'aborted' };
    }
    if (parts.hedges.isOn(job.endpoint) && this.asksForStream(lease)) return this.race(lease);
    const sentAtMs = parts.clock.now();
    const attempt = this.makeAttempt(lease, this);
    this.attempt = attempt;
    const outcome = await this.runAttempt(attempt, lease);
    if (outcome.kind !== 'completed') this.noteDelivered();
    this.attempt = undefined;
    this.engineMs += parts.clock.now() - sentAtMs;
    parts.leases.release(lease, leaseOutcome(outcome));
    return outcome;
  }

  private asksForStream({ engine }: Lease): boolean {
    return this.isStreamed || !dialectOf(engine).reportsUsageUnstreamed(this.job.request.n ?? 1);
  }

  private runAttempt(attempt: EngineAttempt, { url }: Lease): Promise<AttemptOutcome> {
    return attempt.run(this.parts.clients.get(url), () => this.parts.clients.fresh(url));
  }

  private makeAttempt(lease: Lease, sink: AttemptSink): EngineAttempt {
    const { parts, job } = this;
    const stream = this.asksForStream(lease);
    return new EngineAttempt({
      lease,
      body: toEngineRequest(job.document, job.request, { servedModel: lease.servedModel, dialect: dialectOf(lease.engine), stream, cacheSalt: job.cacheSalt }),
      headers: { 'content-type': 'application/json', accept: stream ? 'text/event-stream' : 'application/json', 'accept-encoding': 'identity', 'x-request-id': job.requestId, ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent }) },
      identity: this.identity,
      stream,
      tokensMax: tokensAllowed(job.request, job.endpoint.serving.contextTokens),
      includeUsage: this.isStreamed && job.request.stream_options?.include_usage === true,
      now: () => parts.clock.now(),
      limits: limitsOf(parts.config, job.endpoint),
      onChunks: (chunks) => sink.onChunks(chunks),
      onText: this.joiner === undefined ? (text) => sink.onText(text) : undefined,
    });
  }

  /** Goes on at a second replica where the first token is late. */
  private async race(first: Lease): Promise<AttemptOutcome> {
    const { parts, job: { endpoint: { endpointId } } } = this;
    const race = new HedgeRace({
      timers: parts.timers,
      now: () => parts.clock.now(),
      makeAttempt: (lease, sink) => this.makeAttempt(lease, sink),
      run: (attempt, lease) => this.runAttempt(attempt, lease),
      release: (lease, outcome) => parts.leases.release(lease, leaseOutcome(outcome)),
      second: (replicaId) => this.secondSlot(replicaId),
      observe: (ms) => parts.hedges.observe(endpointId, ms),
      leads: (lease) => (this.lease = lease),
      hedged: (winner, loserMs) => {
        parts.metrics.hedges.inc({ winner });
        parts.metrics.hedgeLoserSeconds.inc(loserMs / 1_000);
        parts.logger.info({ requestId: this.job.requestId, endpointId, winner, loserMs }, 'the first token was late, so a second replica was asked');
      },
      onChunks: (chunks) => this.onChunks(chunks),
      onText: (text) => this.onText(text),
    }, parts.hedges.begin(endpointId, this.promptTokensEstimate));
    this.attempt = race;
    const { outcome, lease } = await race.run(first);
    this.lease = lease;
    if (outcome.kind !== 'completed') this.noteDelivered();
    this.attempt = undefined;
    this.engineMs += race.engineMs;
    return outcome;
  }

  /** A slot for a second attempt: never one that has to be waited for. */
  private async secondSlot(firstReplicaId: string): Promise<Lease | undefined> {
    const { parts, job: { endpoint: { endpointId } } } = this;
    if (this.isGone || !parts.hedges.mayHedge(endpointId)) return undefined;
    const asked = admissionOf(this, [firstReplicaId], 0);
    const admission = parts.desk.admitAtOnce(asked) ?? (await parts.desk.admit(asked));
    return admission.kind === 'granted' ? admission.lease : undefined;
  }

  onChunks(chunks: readonly ChatChunk[]): boolean {
    this.noteFirstToken();
    for (const chunk of chunks) this.joiner?.add(chunk);
    return true;
  }

  /** Hands events on; what reached the client's socket is what the client pays for. */
  onText(text: string): boolean {
    this.noteFirstToken();
    if (this.isGone) return true;
    const canTakeMore = this.answer.write(text, this.onDrain);
    this.hasDelivered = true;
    const nowMs = this.parts.clock.now();
    this.lastTextMs = nowMs;
    if (nowMs - this.progressNotedMs < PROGRESS_INTERVAL_MS) return canTakeMore;
    this.progressNotedMs = nowMs;
    this.noteDelivered();
    this.usage.progress(this.progressOf(this.delivered));
    return canTakeMore;
  }

  /** Everything that an attempt handed on before now was delivered. */
  private noteDelivered(): void {
    if (this.attempt === undefined || !this.hasDelivered) return;
    this.delivered = this.attempt.usage();
  }

  private noteFirstToken(): void {
    if (this.firstTokenAtMs !== undefined) return;
    this.firstTokenAtMs = this.parts.clock.now();
    this.parts.metrics.ofModel(this.job.endpoint.name).timeToFirstToken.observe((this.firstTokenAtMs - this.job.startedAtMs) / 1_000);
  }

  goneSignal(): AbortSignal {
    this.gone ??= new AbortController();
    if (this.isGone) this.gone.abort();
    return this.gone.signal;
  }

  private async conclude(outcome: ExchangeOutcome): Promise<void> {
    if (outcome.kind === 'completed' && !this.isGone) {
      await this.complete(outcome);
    } else if (outcome.kind === 'failed' || outcome.kind === 'refused') {
      this.fail(outcome.kind === 'refused' ? outcome.fault : publicFault(outcome.fault, this.lease?.servedModel, this.job.endpoint.name));
    } else if (this.stopFault !== undefined) {
      this.fail(this.stopFault);
    } else {
      this.settle(this.delivered, { status: 'aborted', finishReason: null, httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected', tokensEstimated: true });
    }
  }

  private async complete(outcome: CompletedAttempt): Promise<void> {
    const { usage } = outcome;
    if (this.lease !== undefined) this.parts.desk.answered(this.lease, this.job.prompt, usage);
    // The record is safe before the client can see the end, so no answer is complete without its usage.
    this.settle(usage, { status: 'completed', finishReason: outcome.finishReason, httpStatus: 200, errorCode: null, tokensEstimated: !usage.known });
    await this.usage.written().catch(() => undefined);
    if (this.joiner === undefined) {
      this.answer.endStream(outcome.tailText);
      return;
    }
    for (const chunk of outcome.tail) this.joiner.add(chunk);
    this.answer.sendJson(JSON.stringify(outcome.answer ?? this.joiner.answer(this.identity, usage)));
  }

  private fail(fault: ApiFault): void {
    this.settle(this.delivered, { status: 'failed', finishReason: null, httpStatus: statusOf(fault), errorCode: fault.code, tokensEstimated: this.delivered !== nothingDelivered });
    if (!this.answer.hasStarted) throw new RequestFault(fault);
    this.answer.failStream(fault);
  }

  private progressOf(usage: RunningUsage): UsageProgress {
    const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
    return { replicaId: this.lease?.replicaId ?? null, promptTokens, cachedTokens, completionTokens, reasoningTokens };
  }

  private settle(usage: RunningUsage, end: Pick<UsageRecordedV1, 'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated'>): void {
    const { parts, job } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const ttftMs = this.firstTokenAtMs === undefined ? null : this.firstTokenAtMs - job.startedAtMs;
    const { status, finishReason, httpStatus, errorCode, tokensEstimated } = end;
    const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
    const record = settleUsage(this.draft, {
      replicaId: this.lease?.replicaId ?? null, promptTokens, cachedTokens, completionTokens, reasoningTokens, status, finishReason, httpStatus, errorCode, tokensEstimated,
      modelVersionId: this.lease?.modelVersionId, queueMs: this.queueMs, ttftMs, durationMs, engineMs: this.engineMs,
    });
    void this.usage.settle(record);
    const metrics = parts.metrics.ofModel(record.modelName);
    metrics.ended(errorCode ?? status);
    const perToken = this.isStreamed && status === 'completed' ? secondsPerToken(record) : undefined;
    if (perToken !== undefined) metrics.timePerToken.observe(perToken);
    metrics.duration.observe(durationMs / 1_000);
    metrics.promptTokens.inc(record.promptTokens);
    metrics.completionTokens.inc(record.completionTokens);
    const { requestId, organisationId, endpointId, modelName, replicaId, queueMs } = record;
    // A request that went well is in the log of events with all of this.
    parts.logger[status === 'completed' ? 'debug' : 'info']({ requestId, organisationId, endpointId, modelName, replicaId, stream: this.isStreamed, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs, ttftMs, durationMs }, 'chat request');
  }
}

/** What the engine may produce at most, over all choices. */
function tokensAllowed(request: ChatCompletionRequest, contextTokens: number): number {
  return (request.max_completion_tokens ?? request.max_tokens ?? contextTokens) * (request.n ?? 1);
}
