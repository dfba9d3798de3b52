import type { Lease } from '@penstock/contract-commands';
import type { ApiFault } from '@penstock/contract-http';
import type { UsageRecordedV1 } from '@penstock/contract-events';
import { ChatJoiner, dialectOf, estimatePromptTokens, sseFrame, toEngineRequest, type AnswerIdentity, type ChatChunk, type EngineFault, type RunningUsage } from '@penstock/domain-serving';
import { settleUsage, type OpenUsage, type UsageDraft, type UsageProgress } from '@penstock/domain-usage';
import { RequestFault } from '../http/request-fault.js';
import type { ChatJob, ChatParts } from './chat-parts.js';
import { statusOf, type ClientAnswer } from './client-answer.js';
import { EngineAttempt, nothingDelivered, type AttemptOutcome } from './engine-attempt.js';
import type { WatchedExchange } from './exchange-watch.js';

/** Further attempts at another replica, and only while nothing of an answer was sent. */
const RETRIES_MAX = 1;
/** An answer that does not come in a stream shows no sign of life until it is whole. */
const WHOLE_ANSWER_TIMEOUT_MS = 600_000;
/** As proxies log it: the client closed its connection. */
const CLIENT_GONE_STATUS = 499;

const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'The gateway stopped before the answer was complete. Send the request again.', retryAfterMs: 500 };

type ExchangeOutcome = AttemptOutcome | { readonly kind: 'refused'; readonly fault: ApiFault };

/** One chat request from its admission to its record of usage. */
export class ChatExchange implements WatchedExchange {
  private readonly identity: AnswerIdentity;
  private readonly joiner: ChatJoiner | undefined;
  private readonly gone = new AbortController();
  private attempt: EngineAttempt | undefined;
  private delivered: RunningUsage = nothingDelivered;
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;
  private firstTokenAtMs: number | undefined;
  private lastHeartbeatMs: number | undefined;
  private stopFault: ApiFault | undefined;

  constructor(private readonly parts: ChatParts, private readonly job: ChatJob, private readonly draft: UsageDraft, private readonly usage: OpenUsage, private readonly answer: ClientAnswer) {
    this.identity = { id: `chatcmpl-${job.requestId.replace(/^req_/, '')}`, created: Math.floor(job.startedAtMs / 1_000), model: job.endpoint.name };
    this.joiner = this.isStreamed ? undefined : new ChatJoiner();
  }

  /** Answers the client. Throws a {@link RequestFault} when nothing was sent yet and an error answer is due. */
  async run(): Promise<void> {
    this.answer.onGone(() => this.leave());
    this.parts.watch.add(this);
    try {
      if (this.answer.isGone) this.leave();
      this.conclude(await this.tryReplicas());
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
    this.gone.abort();
    this.attempt?.abort();
  }

  private async tryReplicas(): Promise<ExchangeOutcome> {
    const excludedReplicaIds: string[] = [];
    let earlier: ExchangeOutcome | undefined;
    for (let attempt = 0; ; attempt += 1) {
      if (this.gone.signal.aborted) return { kind: 'aborted' };
      const { requestId, principal, endpoint, document, traceparent } = this.job;
      const admission = await this.parts.desk.admit({
        requestId, organisationId: principal.organisationId, endpointId: endpoint.endpointId, modelName: endpoint.name, excludedReplicaIds,
        promptTokensEstimate: estimatePromptTokens(document.text.length), traceparent, signal: this.gone.signal,
      });
      if (admission.kind === 'aborted') return admission;
      // What the replica said explains more than that there is no other one.
      if (admission.kind === 'refused') return earlier ?? { kind: 'refused', fault: admission.refusal };
      this.parts.metrics.admissions.inc({ source: admission.source });
      const outcome = await this.work(admission.lease);
      if (outcome.kind !== 'failed' || !outcome.fault.retryElsewhere || attempt >= RETRIES_MAX || this.firstTokenAtMs !== undefined) return outcome;
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
    if (this.gone.signal.aborted) {
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
      includeUsage: this.isStreamed && job.request.stream_options?.include_usage === true,
      now: () => parts.clock.now(),
      limits: { firstTokenMs: parts.config.FIRST_TOKEN_TIMEOUT_MS, chunkGapMs: parts.config.CHUNK_GAP_TIMEOUT_MS, wholeAnswerMs: WHOLE_ANSWER_TIMEOUT_MS },
      onChunks: (chunks, usage) => this.deliver(chunks, usage),
    });
    this.attempt = attempt;
    const outcome = await attempt.run(parts.clients.get(lease.url), () => parts.clients.fresh(lease.url));
    this.attempt = undefined;
    this.engineMs += parts.clock.now() - sentAtMs;
    parts.leases.release(lease, leaseOutcome(outcome));
    return outcome;
  }

  /** Hands chunks on; what reached the client's socket is what the client pays for. */
  private deliver(chunks: readonly ChatChunk[], usage: RunningUsage): boolean {
    if (this.firstTokenAtMs === undefined) {
      this.firstTokenAtMs = this.parts.clock.now();
      this.parts.metrics.timeToFirstToken.observe({ model: this.job.endpoint.name }, (this.firstTokenAtMs - this.job.startedAtMs) / 1_000);
    }
    if (this.joiner !== undefined) {
      for (const chunk of chunks) this.joiner.add(chunk);
      return true;
    }
    if (this.gone.signal.aborted) return true;
    const canTakeMore = this.answer.write(chunks.map(sseFrame).join(''), () => this.attempt?.resume());
    this.delivered = usage;
    this.usage.progress(this.progressOf(usage));
    return canTakeMore;
  }

  private conclude(outcome: ExchangeOutcome): void {
    if (outcome.kind === 'completed' && !this.gone.signal.aborted) {
      this.complete(outcome);
    } else if (outcome.kind === 'failed' || outcome.kind === 'refused') {
      this.fail(outcome.kind === 'refused' ? outcome.fault : this.publicFault(outcome.fault));
    } else if (this.stopFault !== undefined) {
      this.fail(this.stopFault);
    } else {
      this.settle({ ...this.progressOf(this.delivered), status: 'aborted', finishReason: null, httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected', tokensEstimated: true });
    }
  }

  private complete(outcome: Extract<AttemptOutcome, { kind: 'completed' }>): void {
    const { usage } = outcome;
    // The record is safe before the client can see the end, so no answer is complete without its usage.
    this.settle({ ...this.progressOf(usage), status: 'completed', finishReason: outcome.finishReason, httpStatus: 200, errorCode: null, tokensEstimated: !usage.known });
    this.firstTokenAtMs ??= this.parts.clock.now();
    if (this.joiner === undefined) {
      this.answer.endStream(outcome.tail.map(sseFrame).join(''));
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
    parts.metrics.duration.observe({ model: record.modelName }, durationMs / 1_000);
    parts.metrics.tokens.inc({ model: record.modelName, type: 'prompt' }, record.promptTokens);
    parts.metrics.tokens.inc({ model: record.modelName, type: 'completion' }, record.completionTokens);
    const { requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs } = record;
    parts.logger.info({ requestId, organisationId, endpointId, modelName, replicaId, stream: this.isStreamed, status, httpStatus, errorCode, finishReason, promptTokens, completionTokens, queueMs, ttftMs, durationMs }, 'chat request');
  }
}

/** What the router judges the replica by: a request that the engine rightly refused is none of its failures. */
function leaseOutcome(outcome: AttemptOutcome): 'ok' | 'aborted' | 'engine-failed' {
  if (outcome.kind === 'completed') return 'ok';
  if (outcome.kind === 'aborted') return 'aborted';
  return statusOf(outcome.fault) < 500 ? 'ok' : 'engine-failed';
}
