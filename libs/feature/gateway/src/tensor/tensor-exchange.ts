import type { Lease } from '@penstock/contract-commands';
import type { UsageRecordedV1 } from '@penstock/contract-events';
import type { ApiFault } from '@penstock/contract-http';
import { DEFAULT_PRIORITY } from '@penstock/domain-routing';
import { HEAD_LENGTH_HEADER, normaliseInfer, readTensorFault, type EngineFault, type NormalisedInfer } from '@penstock/domain-serving';
import { settleUsage, type OpenUsage, type UsageDraft } from '@penstock/domain-usage';
import type { ChatParts } from '../chat/chat-parts.js';
import { statusOf } from '../chat/client-answer.js';
import type { WatchedExchange } from '../chat/exchange-watch.js';
import { RequestFault } from '../http/request-fault.js';
import { callTensorEngine, type TensorEnd } from './tensor-call.js';
import type { TensorJob } from './tensor-job.js';
import type { TensorMetrics } from './tensor-metrics.js';

/** Further attempts at another replica, where the first one surely did not do the work or refused it. */
const RETRIES_MAX = 1;
/** As proxies log it: the client closed its connection. */
const CLIENT_GONE_STATUS = 499;

const shuttingDownFault: ApiFault = { code: 'shutting_down', message: 'The gateway stopped before the answer was complete. Send the request again.', retryAfterMs: 500 };
const unreachableFault: EngineFault = { code: 'replica_failed', message: 'The replica that the request was for does not answer. Try again.', param: null, retryElsewhere: true };
/** The work may have been done, so it is for the caller to decide whether it is done again. */
const lostFault: EngineFault = { code: 'replica_failed', message: 'The replica that worked on the request failed. Try again.', param: null, retryElsewhere: false };
const timeoutFault: EngineFault = { code: 'engine_timeout', message: 'The model did not answer in time. Try again.', param: null, retryElsewhere: false };
const tooLargeFault: EngineFault = { code: 'engine_response_invalid', message: 'The answer of the model is larger than this gateway takes. Ask for fewer outputs or send fewer rows.', param: null, retryElsewhere: false };

export type InferAnswer = Extract<NormalisedInfer, { kind: 'answer' }>;
type Outcome = InferAnswer | { readonly kind: 'failed'; readonly fault: EngineFault } | { readonly kind: 'refused'; readonly fault: ApiFault } | { readonly kind: 'aborted' };

/** One inference from its admission to its record of usage. */
export class TensorExchange implements WatchedExchange {
  private readonly gone = new AbortController();
  private readonly stopped = new AbortController();
  private lease: Lease | undefined;
  private queueMs = 0;
  private engineMs = 0;

  constructor(private readonly parts: ChatParts, private readonly metrics: TensorMetrics, private readonly job: TensorJob, private readonly draft: UsageDraft, private readonly usage: OpenUsage) {}

  /**
   * The answer to send; undefined when the client left. Throws a {@link RequestFault} where an error answer is due. A client that leaves while an
   * engine works keeps its slot until the engine is done: engines of tensors finish what they began whether anybody waits for it or not.
   */
  async run(): Promise<InferAnswer | undefined> {
    this.parts.watch.add(this);
    this.parts.retries.countRequest();
    try {
      return await this.conclude(await this.tryReplicas());
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

  private async tryReplicas(): Promise<Outcome> {
    const excludedReplicaIds: string[] = [];
    let earlier: Outcome | undefined;
    for (let attempt = 0; ; attempt += 1) {
      if (this.gone.signal.aborted) return { kind: 'aborted' };
      const { requestId, principal, endpoint, traceparent } = this.job;
      // Nothing reaches an engine that a crash could leave without a record.
      if (attempt === 0) await this.usage.written();
      const asked = {
        requestId, organisationId: principal.organisationId, endpointId: endpoint.endpointId, modelName: endpoint.name, excludedReplicaIds, promptTokensEstimate: 0, answerTokensMax: 0,
        priority: DEFAULT_PRIORITY, weight: 1, traceparent, signal: () => this.gone.signal,
      };
      const admission = this.parts.desk.admitAtOnce(asked) ?? (await this.parts.desk.admit(asked));
      if (admission.kind === 'aborted') return admission;
      // What the replica said explains more than that there is no other one.
      if (admission.kind === 'refused') return earlier ?? { kind: 'refused', fault: admission.refusal };
      this.parts.metrics.admissions.inc({ source: admission.source });
      const outcome = await this.work(admission.lease);
      if (outcome.kind !== 'failed' || !outcome.fault.retryElsewhere || attempt >= RETRIES_MAX || !this.parts.retries.mayRetry()) return outcome;
      this.parts.metrics.retries.inc({ reason: outcome.fault.code });
      excludedReplicaIds.push(admission.lease.replicaId);
      earlier = outcome;
    }
  }

  private async work(lease: Lease): Promise<Outcome> {
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
    }, { signal: this.stopped.signal, timeoutMs: parts.config.FIRST_TOKEN_TIMEOUT_MS });
    const outcome = this.read(end);
    this.engineMs += parts.clock.now() - sentAtMs;
    parts.leases.release(lease, leaseOutcome(outcome));
    return outcome;
  }

  private read(end: TensorEnd): Outcome {
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
    if (outcome.kind === 'failed' || outcome.kind === 'refused') return this.fail(outcome.kind === 'refused' ? outcome.fault : this.publicFault(outcome.fault));
    if (this.stopped.signal.aborted) return this.fail(shuttingDownFault);
    if (outcome.kind === 'aborted' || this.gone.signal.aborted) {
      this.settle({ status: 'aborted', httpStatus: CLIENT_GONE_STATUS, errorCode: 'client_disconnected' }, 0);
      return undefined;
    }
    // The record is safe before the client can see the answer.
    this.settle({ status: 'completed', httpStatus: 200, errorCode: null }, outcome.elements);
    await this.usage.written().catch(() => undefined);
    return outcome;
  }

  private fail(fault: ApiFault): never {
    this.settle({ status: 'failed', httpStatus: statusOf(fault), errorCode: fault.code }, 0);
    throw new RequestFault(fault);
  }

  /** The engine's own words may name the model as only we know it. */
  private publicFault({ code, message, param, retryElsewhere }: EngineFault): ApiFault {
    const inner = this.lease?.servedModel ?? '';
    const words = inner === '' ? message : message.replaceAll(`'${inner}'`, `'${this.job.endpoint.name}'`);
    return { code, message: words, ...(param === null ? {} : { param }), ...(retryElsewhere || code === 'replica_failed' ? { retryAfterMs: 1_000 } : {}) };
  }

  private settle(end: Pick<UsageRecordedV1, 'status' | 'httpStatus' | 'errorCode'>, outputElements: number): void {
    const { parts, job, metrics } = this;
    const durationMs = Math.max(0, parts.clock.now() - job.startedAtMs);
    const record = settleUsage(this.draft, {
      ...end, replicaId: this.lease?.replicaId ?? null, modelVersionId: this.lease?.modelVersionId, promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0,
      finishReason: null, tokensEstimated: false, queueMs: this.queueMs, ttftMs: null, durationMs, engineMs: this.engineMs,
    });
    void this.usage.settle(record);
    parts.metrics.duration.observe({ model: record.modelName }, durationMs / 1_000);
    metrics.inferences.inc({ model: record.modelName, status: end.status });
    metrics.elements.inc({ model: record.modelName, direction: 'input' }, job.inputElements);
    metrics.elements.inc({ model: record.modelName, direction: 'output' }, outputElements);
    const { requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, queueMs, engineMs } = record;
    parts.logger.info({ requestId, organisationId, endpointId, modelName, replicaId, status, httpStatus, errorCode, inputElements: job.inputElements, outputElements, queueMs, engineMs, durationMs }, 'inference');
  }
}

/** What the router judges the replica by: a request that is at fault itself, or a model that fails on its input, is no failure of the replica. */
function leaseOutcome(outcome: Outcome): 'ok' | 'aborted' | 'engine-failed' {
  if (outcome.kind === 'aborted') return 'aborted';
  if (outcome.kind !== 'failed' || outcome.fault.code === 'inference_failed') return 'ok';
  return statusOf(outcome.fault) < 500 ? 'ok' : 'engine-failed';
}
