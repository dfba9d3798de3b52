import type { Lease } from '@penstock/contract-commands';
import type { ApiFault, ChatCompletionRequest } from '@penstock/contract-http';
import type { UsageRecordedV1 } from '@penstock/contract-events';
import { ChatJoiner, dialectOf, estimatePromptTokens, toEngineRequest, type AnswerIdentity, type ChatChunk, type EngineFault, type RunningUsage } from '@penstock/domain-serving';
import { settleUsage, type OpenUsage, type UsageDraft, type UsageProgress } from '@penstock/domain-usage';
import { RequestFault } from '../http/request-fault.js';
import type { ChatJob, ChatParts } from './chat-parts.js';
import { statusOf, type ClientAnswer } from './client-answer.js';
import { EngineAttempt, nothingDelivered, type AttemptOutcome } from './engine-attempt.js';
import type { WatchedExchange } from './exchange-watch.js';

/** Further attempts at another replica, and only while nothing of an answer was sent. */
const RETRIES_MAX = 1;
/** A request that failed once waits this long for another replica: then its error is worth more than the queue, which others in the same trouble fill. */
const RETRY_WAIT_MS_MAX = 5_000;
/** An answer that does not come in a stream shows no sign of life until it is whole. */
const WHOLE_ANSWER_TIMEOUT_MS = 600_000;
/** How often the progress of a stream is noted; a killed gateway forgets at most so much of it. */
const PROGRESS_INTERVAL_MS = 100;
/** Assumed of an answer without a limit, for admission alone. */
const ANSWER_TOKENS_ASSUMED = 512;
/** As proxies log it: the client closed its connection. */
const CLIENT_GONE_STATUS = 499;

const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'The gateway stopped before the answer was complete. Send the request again.', retryAfterMs: 500 };

type ExchangeOutcome = AttemptOutcome | { readonly kind: 'refused'; readonly fault: ApiFault };

/** One chat request from its admission to its record of usage. */
export class ChatExchange implements WatchedExchange {
  private readonly identity: AnswerIdentity;
  private readonly joiner: ChatJoiner | undefined;
  private gone: AbortController | undefined;
  private isGone = false;
  private progressNotedMs = 0;
  private attempt: EngineAttempt | undefined;
  private delivered: RunningUsage = nothingDelivered;
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;
  private firstTokenAtMs: number | undefined;
  private lastHeartbeatMs: number | undefined;
  private stopFault: ApiFault | undefined;
  private hasDelivered = false;
  private readonly onDrain = (): void => this.attempt?.resume();

  constructor(private readonly parts: ChatParts, private readonly job: ChatJob, private readonly draft: UsageDraft, private readonly usage: OpenUsage, private readonly answer: ClientAnswer) {
    this.identity = { id: `chatcmpl-${job.requestId.replace(/^req_/, '')}`, created: Math.floor(job.startedAtMs / 1_000), model: job.endpoint.name };
    this.joiner = this.isStreamed ? undefined : new ChatJoiner();
  }

  /** Answers the client. Throws a {@link RequestFault} when nothing was sent yet and an error answer is due. */
  async run(): Promise<void> {
    this.answer.onGone(() => this.leave());
    this.parts.watch.add(this);
    this.parts.retries.countRequest();
    try {
      if (this.answer.isGone) this.leave();
      await this.conclude(await this.tryReplicas());
    } finally {
      this.parts.watch.remove(this);
    }
  }

  tick(nowMs: number): void {
    this.attempt?.tick(nowMs);
    const { CLIENT_STALL_TIMEOUT_MS, EARLY_HEADERS_AFTER_MS, HEARTBEAT_INTERVAL_MS } = this.parts.config;
    const { blockedSince } = this.answer;
    if (blockedSince !== undefined && nowMs - blockedSince >= CLIENT_STALL_TIMEOUT_MS) this.answer.drop();
    if (!this.isStreamed || this.firstTokenAtMs !== undefined || nowMs - this.job.startedAtMs < EARLY_HEADERS_AFTER_MS) return;
    if (this.lastHeartbeatMs !== undefined && nowMs - this.lastHeartbeatMs < HEARTBEAT_INTERVAL_MS) return;
    this.lastHeartbeatMs = nowMs;
    this.answer.heartbeat(this.parts.loading(this.job.endpoint.endpointId));
  }

  shutDown(): void {
    this.stopFault = shuttingDownFault;
    this.leave();
  }

  private get isStreamed(): boolean {
    return this.job.request.stream === true;
  }

  private leave(): void {
    this.isGone = true;
    this.gone?.abort();
    this.attempt?.abort();
  }

  private async tryReplicas(): Promise<ExchangeOutcome> {
    const excludedReplicaIds: string[] = [];
    let earlier: ExchangeOutcome | undefined;
    for (let attempt = 0; ; attempt += 1) {
      // Nothing reaches an engine that a crash could leave without a record.
      if (attempt === 0) await this.usage.written();
      if (this.isGone) return { kind: 'aborted' };
      const { requestId, principal, endpoint, document, traceparent, priority, request } = this.job;
      const asked = {
        requestId, organisationId: principal.organisationId, endpointId: endpoint.endpointId, modelName: endpoint.name, excludedReplicaIds,
        promptTokensEstimate: estimatePromptTokens(document.text.length), answerTokensMax: answerTokensMax(request, endpoint.serving.contextTokens),
        priority, weight: 1, traceparent, signal: () => this.goneSignal(),
        ...(attempt === 0 ? {} : { waitMsMax: RETRY_WAIT_MS_MAX }),
      };
      const admission = this.parts.desk.admitAtOnce(asked) ?? (await this.parts.desk.admit(asked));
      if (admission.kind === 'aborted') return admission;
      // What the replica said explains more than that there is no other one.
      if (admission.kind === 'refused') return earlier ?? { kind: 'refused', fault: admission.refusal };
      this.parts.metrics.admissions.inc({ source: admission.source });
      const outcome = await this.work(admission.lease);
      if (outcome.kind !== 'failed' || !outcome.fault.retryElsewhere || attempt >= RETRIES_MAX || this.firstTokenAtMs !== undefined || !this.parts.retries.mayRetry()) return outcome;
      this.parts.metrics.retries.inc({ reason: outcome.fault.code });
      excludedReplicaIds.push(admission.lease.replicaId);
      earlier = outcome;
    }
  }

  private async work(lease: Lease): Promise<AttemptOutcome> {
    const { parts, job } = this;
    this.lease = lease;
    this.queueMs += lease.queuedMs;
    const dialect = dialectOf(lease.engine);
    const stream = this.isStreamed || !dialect.reportsUsageUnstreamed(job.request.n ?? 1);
    if (this.isGone) {
      parts.leases.release(lease, 'aborted');
      return { kind: 'aborted' };
    }
    const sentAtMs = parts.clock.now();
    const attempt = new EngineAttempt({
      lease,
      body: toEngineRequest(job.document, job.request, { servedModel: lease.servedModel, dialect, stream, cacheSalt: job.cacheSalt }),
      headers: { 'content-type': 'application/json', accept: stream ? 'text/event-stream' : 'application/json', 'accept-encoding': 'identity', 'x-request-id': job.requestId, ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent }) },
      identity: this.identity,
      stream,
      tokensMax: tokensAllowed(job.request, job.endpoint.serving.contextTokens),
      includeUsage: this.isStreamed && job.request.stream_options?.include_usage === true,
      now: () => parts.clock.now(),
      limits: { firstTokenMs: parts.config.FIRST_TOKEN_TIMEOUT_MS, chunkGapMs: parts.config.CHUNK_GAP_TIMEOUT_MS, wholeAnswerMs: WHOLE_ANSWER_TIMEOUT_MS },
      onChunks: (chunks) => this.join(chunks),
      onText: this.joiner === undefined ? (text) => this.deliver(text) : undefined,
    });
    this.attempt = attempt;
    const outcome = await attempt.run(parts.clients.get(lease.url), () => parts.clients.fresh(lease.url));
    if (outcome.kind !== 'completed') this.noteDelivered();
    this.attempt = undefined;
    this.engineMs += parts.clock.now() - sentAtMs;
    parts.leases.release(lease, leaseOutcome(outcome));
    return outcome;
  }

  private join(chunks: readonly ChatChunk[]): boolean {
    this.noteFirstToken();
    for (const chunk of chunks) this.joiner?.add(chunk);
    return true;
  }

  /** Hands events on; what reached the client's socket is what the client pays for. */
  private deliver(text: string): boolean {
    this.noteFirstToken();
    if (this.isGone) return true;
    const canTakeMore = this.answer.write(text, this.onDrain);
    this.hasDelivered = true;
    const nowMs = this.parts.clock.now();
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

  private goneSignal(): AbortSignal {
    this.gone ??= new AbortController();
    if (this.isGone) this.gone.abort();
    return this.gone.signal;
  }

  private async conclude(outcome: ExchangeOutcome): Promise<void> {
    if (outcome.kind === 'completed' && !this.isGone) {
      await this.complete(outcome);
    } else if (outcome.kind === 'failed' || outcome.kind === 'refused') {
      this.fail(outcome.kind === 'refused' ? outcome.fault : this.publicFault(outcome.fault));
    } else if (this.stopFault !== undefined) {
      this.fail(this.stopFault);
    } else {
      this.settle({ ...this.progressOf(this.delivered), status: 'aborted', finishReason: null, httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected', tokensEstimated: true });
    }
  }

  private async complete(outcome: Extract<AttemptOutcome, { kind: 'completed' }>): Promise<void> {
    const { usage } = outcome;
    // The record is safe before the client can see the end, so no answer is complete without its usage.
    this.settle({ ...this.progressOf(usage), status: 'completed', finishReason: outcome.finishReason, httpStatus: 200, errorCode: null, tokensEstimated: !usage.known });
    await this.usage.written().catch(() => undefined);
    if (this.joiner === undefined) {
      this.answer.endStream(outcome.tailText);
      return;
    }
    for (const chunk of outcome.tail) this.joiner.add(chunk);
    this.answer.sendJson(JSON.stringify(outcome.answer ?? this.joiner.answer(this.identity, usage)));
  }

  private fail(fault: ApiFault): void {
    this.settle({ ...this.progressOf(this.delivered), status: 'failed', finishReason: null, httpStatus: statusOf(fault), errorCode: fault.code, tokensEstimated: this.delivered !== nothingDelivered });
    if (!this.answer.hasStarted) throw new RequestFault(fault);
    this.answer.failStream(fault);
  }

  /** The engine's own words may name the model as only we know it. */
  private publicFault({ code, message, param, retryElsewhere }: EngineFault): ApiFault {
    const inner = this.lease?.servedModel ?? '';
    const words = inner === '' ? message : message.replaceAll(inner, this.job.endpoint.name);
    return { code, message: words, ...(param === null ? {} : { param }), ...(retryElsewhere ? { retryAfterMs: 1_000 } : {}) };
  }

  private progressOf(usage: RunningUsage): UsageProgress {
    const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = usage;
    return { replicaId: this.lease?.replicaId ?? null, promptTokens, cachedTokens, completionTokens, reasoningTokens };
  }

  private settle(end: UsageProgress & Pick<UsageRecordedV1, 'status' | 'finishReason' | 'httpStatus' | 'errorCode' | 'tokensEstimated'>): void {
    const { parts, job } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const ttftMs = this.firstTokenAtMs === undefined ? null : this.firstTokenAtMs - job.startedAtMs;
    const record = settleUsage(this.draft, { ...end, modelVersionId: this.lease?.modelVersionId, queueMs: this.queueMs, ttftMs, durationMs, engineMs: this.engineMs });
    this.usage.settle(record).catch((error: unknown) => parts.logger.error({ err: error, requestId: job.requestId }, 'usage could not be forced to disk'));
    const metrics = parts.metrics.ofModel(record.modelName);
    metrics.duration.observe(durationMs / 1_000);
    metrics.promptTokens.inc(record.promptTokens);
    metrics.completionTokens.inc(record.completionTokens);
    const { requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs } = record;
    // A request that went well is in the log of events with all of this.
    parts.logger[status === 'completed' ? 'debug' : 'info']({ requestId, organisationId, endpointId, modelName, replicaId, stream: this.isStreamed, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs, ttftMs, durationMs }, 'chat request');
  }
}

/** What the engine may produce at most, over all choices. */
function tokensAllowed(request: ChatCompletionRequest, contextTokens: number): number {
  return (request.max_completion_tokens ?? request.max_tokens ?? contextTokens) * (request.n ?? 1);
}

/** What the answer may take of a KV cache at most, over all of its choices. */
function answerTokensMax(request: ChatCompletionRequest, contextTokens: number): number {
  const limit = request.max_completion_tokens ?? request.max_tokens ?? ANSWER_TOKENS_ASSUMED;
  return Math.min(limit, contextTokens) * (request.n ?? 1);
}

/** What the router judges the replica by: a request that the engine rightly refused is none of its failures. */
function leaseOutcome(outcome: AttemptOutcome): 'ok' | 'aborted' | 'engine-failed' {
  if (outcome.kind === 'completed') return 'ok';
  if (outcome.kind === 'aborted') return 'aborted';
  return statusOf(outcome.fault) < 500 ? 'ok' : 'engine-failed';
}
