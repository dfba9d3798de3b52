import type { Lease } from '@penstock/contract-commands';
import type { UsageRecord } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { HEAD_LENGTH_HEADER, normaliseInfer, readTensorFault, type EngineFault, type NormalisedInfer } from '@penstock/domain-serving';
import { settleUsage } from '@penstock/domain-usage';
import type { ChatParts } from '../chat/chat-parts.js';
import { statusOf } from '../chat/client-answer.js';
import type { WatchedExchange } from '../chat/exchange-watch.js';
import { modelLabel } from '../gateway-metrics.js';
import { RequestFault } from '../http/request-fault.js';
import { CLIENT_GONE_STATUS, leaseOutcome, limitsOf, publicFault, shuttingDownFault } from '../frame/exchange-end.js';
import type { UsageLedger } from '../frame/model-work.js';
import { tryReplicas, type Aborted, type Failed, type Refused, type ReplicaUser } from '../frame/try-replicas.js';
import { callTensorEngine, type TensorEnd } from './tensor-call.js';
import type { TensorJob } from './tensor-job.js';
import type { TensorMetrics } from './tensor-metrics.js';

const unreachableFault: EngineFault = { code: 'replica_failed', message: 'The replica that the request was for does not answer. Try again.', param: null, retryElsewhere: true };
/** The work may have been done, so it is for the caller to decide whether it is done again. */
const lostFault: EngineFault = { code: 'replica_failed', message: 'The replica that worked on the request failed. Try again.', param: null, retryElsewhere: false };
const timeoutFault: EngineFault = { code: 'engine_timeout', message: 'The model did not answer in time. Try again.', param: null, retryElsewhere: false };
const tooLargeFault: EngineFault = { code: 'engine_response_invalid', message: 'The answer of the model is larger than this gateway takes. Ask for fewer outputs or send fewer rows.', param: null, retryElsewhere: false };

export type InferAnswer = Extract<NormalisedInfer, { kind: 'answer' }>;
type Outcome = InferAnswer | Failed | Aborted | Refused;

/** One inference from its admission to its record of usage. */
export class TensorExchange implements WatchedExchange, ReplicaUser<InferAnswer> {
  /** Tensors need no KV cache. */
  readonly promptTokensEstimate = 0;
  readonly answerTokensMax = 0;
  /** Every answer is whole, so nothing of one is sent before the end. */
  readonly hasBegun = false;
  /** Never asked for twice at once. */
  readonly isSpent = false;
  private readonly gone = new AbortController();
  private readonly stopped = new AbortController();
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;

  constructor(private readonly parts: ChatParts, private readonly metrics: TensorMetrics, readonly job: TensorJob, private readonly ledger: UsageLedger) {}

  /**
   * The answer to send; undefined when the client left. Throws a {@link RequestFault} where an error answer is due. A client that leaves while an
   * engine works keeps its slot until the engine is done: engines of tensors finish what they began whether anybody waits for it or not.
   */
  async run(): Promise<InferAnswer | undefined> {
    this.parts.watch.add(this);
    this.parts.retries.of(this.job.endpoint.endpointId).countRequest();
    try {
      return await this.conclude(await tryReplicas(this.parts, this));
    } finally {
      this.parts.watch.remove(this);
    }
  }

  /** The client closed its connection. */
  leave(): void {
    this.gone.abort();
  }

  tick(): void {
    // The call to the engine keeps its own time limit, and there is no stream whose pauses could be too long.
  }

  shutDown(): void {
    this.stopped.abort();
    this.gone.abort();
  }

  get isGone(): boolean {
    return this.gone.signal.aborted;
  }

  goneSignal(): AbortSignal {
    return this.gone.signal;
  }

  recorded(): Promise<void> {
    return this.ledger.usage.written();
  }

  async work(lease: Lease): Promise<InferAnswer | Failed | Aborted> {
    const { parts, job } = this;
    this.lease = lease;
    this.queueMs += lease.queuedMs;
    if (this.gone.signal.aborted) {
      parts.leases.release(lease, 'aborted');
      return { kind: 'aborted' };
    }
    const sentAtMs = parts.clock.now();
    const { pathname } = new URL(lease.url);
    const end = await callTensorEngine(parts.clients.pool(lease.url), {
      method: 'POST',
      path: `${pathname.replace(/\/$/, '')}/v2/models/${encodeURIComponent(lease.servedModel)}/infer`,
      headers: {
        'content-type': job.headLength === undefined ? 'application/json' : 'application/octet-stream', 'accept-encoding': 'identity', 'x-request-id': job.requestId,
        ...(job.headLength === undefined ? {} : { [HEAD_LENGTH_HEADER]: job.headLength }), ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent }),
      },
      body: job.body,
    }, { signal: this.stopped.signal, timeoutMs: limitsOf(parts.config, job.endpoint).firstTokenMs });
    const outcome = this.read(end);
    this.engineMs += parts.clock.now() - sentAtMs;
    parts.leases.release(lease, leaseOutcome(outcome));
    return outcome;
  }

  private read(end: TensorEnd): InferAnswer | Failed | Aborted {
    switch (end.kind) {
      case 'aborted': return end;
      case 'unsent': return { kind: 'failed', fault: unreachableFault };
      case 'lost': return { kind: 'failed', fault: lostFault };
      case 'timed-out': return { kind: 'failed', fault: timeoutFault };
      case 'too-large': return { kind: 'failed', fault: tooLargeFault };
      case 'answered': {
        const { status, body, headLength } = end.reply;
        if (status !== 200) return { kind: 'failed', fault: readTensorFault(status, Buffer.from(body).toString('utf8')) };
        const normalised = normaliseInfer(body, headLength, { name: this.job.endpoint.name, version: this.job.version });
        return normalised.kind === 'fault' ? { kind: 'failed', fault: normalised.fault } : normalised;
      }
    }
  }

  private async conclude(outcome: Outcome): Promise<InferAnswer | undefined> {
    if (outcome.kind === 'failed' || outcome.kind === 'refused') return this.fail(outcome.kind === 'refused' ? outcome.fault : publicFault(outcome.fault, this.lease && `'${this.lease.servedModel}'`, `'${this.job.endpoint.name}'`));
    if (this.stopped.signal.aborted) return this.fail(shuttingDownFault);
    if (outcome.kind === 'aborted' || this.gone.signal.aborted) {
      this.settle({ status: 'aborted', httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected' }, 0);
      return undefined;
    }
    // The record is safe before the client can see the answer.
    this.settle({ status: 'completed', httpStatus: 200, errorCode: null }, outcome.elements);
    await this.ledger.usage.written().catch(() => undefined);
    return outcome;
  }

  private fail(fault: ApiFault): never {
    this.settle({ status: 'failed', httpStatus: statusOf(fault), errorCode: fault.code }, 0);
    throw new RequestFault(fault);
  }

  private settle(end: Pick<UsageRecord, 'status' | 'httpStatus' | 'errorCode'>, outputElements: number): void {
    const { parts, job, metrics } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const record = settleUsage(this.ledger.draft, {
      ...end, replicaId: this.lease?.replicaId ?? null, modelVersionId: this.lease?.modelVersionId, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0,
      finishReason: null, tokensEstimated: false, queueMs: this.queueMs, ttftMs: null, durationMs, engineMs: this.engineMs,
    });
    void this.ledger.usage.settle(record);
    const figures = parts.metrics.ofModel(job.endpoint);
    const model = modelLabel(job.endpoint);
    figures.ended(end.errorCode ?? end.status);
    figures.duration.observe(durationMs / 1_000);
    metrics.inferences.inc({ model, status: end.status });
    metrics.elements.inc({ model, direction: 'input' }, job.inputElements);
    metrics.elements.inc({ model, direction: 'output' }, outputElements);
    const { requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, queueMs, engineMs } = record;
    parts.logger.info({ requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, inputElements: job.inputElements, outputElements, queueMs, engineMs, durationMs }, 'inference');
  }
}
