import { Inject, Injectable } from '@nestjs/common';
import { isoTime } from '@penstock/kernel';
import { wasStopped } from '@penstock/domain-access';
import type { PriorityClass } from '@penstock/domain-routing';
import { CHAT_PARTS, type ChatParts } from '../chat/chat-parts.js';
import { RequestTrace } from '../chat/request-trace.js';
import type { RefusalBook } from '../explain/refusal-book.js';
import type { GatewayPorts } from '../gateway-ports.js';
import type { GatewayViews } from '../gateway-views.js';
import { faultOf, RequestFault } from '../http/request-fault.js';
import { ANSWERED, type DirectCall } from '../http/route-call.js';
import { limitedCall } from '../limits/limited-call.js';
import type { LimitReservation } from '../limits/request-limits.js';
import { GATEWAY_PORTS, GATEWAY_VIEWS, REFUSAL_BOOK } from '../tokens.js';
import type { ModelJob, ModelWork, UsageLedger } from './model-work.js';

/** Tenants whose salt is remembered. */
const CACHE_SALTS_MAX = 20_000;

/** The share of a gateway's room that requests of a class may fill up to: what waits least finds room when the others find none. */
const ROOM_SHARES: Readonly<Record<PriorityClass, number>> = { reserved: 1, paid: 1, 'best-effort': 0.9, batch: 0.8 };

/** Where every request to a model begins and ends: room in this gateway, a trace, the limits it is under, and a line in the outbox of usage. */
@Injectable()
export class ModelDesk {
  private readonly cacheSalts = new Map<string, string>();

  constructor(@Inject(GATEWAY_PORTS) private readonly ports: GatewayPorts, @Inject(CHAT_PARTS) private readonly parts: ChatParts, @Inject(REFUSAL_BOOK) private readonly refusals: RefusalBook, @Inject(GATEWAY_VIEWS) private readonly views: GatewayViews) {}

  /** Carries one request out. Throws a {@link RequestFault} while nothing was sent. */
  async serve<Job extends ModelJob, Call extends DirectCall>(call: Call, work: ModelWork<Job, Call>): Promise<typeof ANSWERED> {
    const { metrics, clock, limits } = this.parts;
    const trace = new RequestTrace(work.name, call.request.headers, { 'gen_ai.operation.name': work.name, 'penstock.request.id': call.requestId });
    metrics.inFlight.inc();
    let reservation: LimitReservation | undefined;
    let job: Job | undefined;
    let isHandedOver = false;
    try {
      this.refuseStoppedJob(call);
      this.refuseWhenFull('reserved');
      job = work.prepare(call, { startedAtMs: clock.now(), traceparent: trace.traceparent });
      this.refuseWhenFull(job.priority);
      const reserved = limits.reserve(limitedCall(call, job.endpoint, work.estimate(job)));
      // Most calls are under no limit and wait for nothing.
      reservation = reserved instanceof Promise ? await reserved : reserved;
      const ledger = this.openLedger(job, reservation);
      isHandedOver = true;
      await work.carryOut(call, job, ledger);
      trace.end();
      return ANSWERED;
    } catch (error) {
      trace.end(error);
      // What is carried out counts itself, with what it used.
      if (job !== undefined && !isHandedOver) metrics.ofModel(job.endpoint).ended(faultOf(error).code);
      this.refusals.note(call, { operation: work.name, model: job?.endpoint.name ?? null, atMs: job?.startedAtMs ?? clock.now() }, faultOf(error));
      throw error;
    } finally {
      reservation?.end();
      metrics.inFlight.dec();
    }
  }

  /** Keeps a tenant's prefixes in an engine's cache apart from those of others. */
  cacheSaltOf(organisationId: string): string {
    let salt = this.cacheSalts.get(organisationId);
    if (salt !== undefined) return salt;
    salt = this.ports.keys.cacheSalt(organisationId);
    if (this.cacheSalts.size >= CACHE_SALTS_MAX) this.cacheSalts.clear();
    this.cacheSalts.set(organisationId, salt);
    return salt;
  }

  /** A job outlives the key that started it where that expires or is rotated, but not where somebody stopped it. */
  private refuseStoppedJob({ batchId, principal: { keyId } }: DirectCall): void {
    if (batchId === null || !wasStopped(this.views.access.state(), keyId)) return;
    throw new RequestFault({ code: 'insufficient_permissions', message: 'The key that started this batch was revoked, so its requests are not carried out any more. Start it again with another key.' });
  }

  private refuseWhenFull(priority: PriorityClass): void {
    const { watch: { count }, config: { REQUESTS_IN_FLIGHT_MAX } } = this.parts;
    const max = Math.ceil(REQUESTS_IN_FLIGHT_MAX * ROOM_SHARES[priority]);
    if (count < max) return;
    throw new RequestFault({ code: 'queue_full', message: 'This gateway works on as many requests as it can. Try again shortly.', retryAfterMs: 1_000, limit: { name: 'gateway_requests', scope: 'requests that one gateway works on at once', limit: max, used: count } });
  }

  private openLedger(job: ModelJob, reservation: LimitReservation): UsageLedger | undefined {
    const { requestId, principal, endpoint, batchId, metered, isStreamed, startedAtMs, traceparent } = job;
    if (metered === null) return undefined;
    const { organisationId, projectId, keyId } = principal;
    const { endpointId, name, modelVersionId } = endpoint;
    const draft = {
      requestId, organisationId, projectId, keyId, endpointId, modelName: name, modelVersionId, batchId, operation: metered, stream: isStreamed,
      startedAt: isoTime(startedAtMs), replicaId: null,
    };
    return { draft, usage: reservation.watch(this.ports.usage.open(draft, traceparent)) };
  }
}
