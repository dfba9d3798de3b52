import { admitRequest, borrowSlots, cancelAdmission, releaseLeases, renewLeases, type CommandContract } from '@penstock/contract-commands';
import type { CatalogState, EndpointState } from '@penstock/domain-catalog';
import { DEFAULT_PRIORITY, type Waiter } from '@penstock/domain-routing';
import { refused } from '@penstock/feature-shell';
import { ServiceUnavailableError, type Clock, type IdSource, type LiveProjection, type Logger, type Refusal, type Timers } from '@penstock/kernel';
import type { z } from 'zod';
import type { Desks } from './desks.js';
import type { AdmitOutcome, EndpointDesk } from './endpoint-desk.js';
import type { OwnerLink } from './owner-link.js';
import type { RouterMembers } from './router-members.js';

type AdmitCommand = z.output<typeof admitRequest.request>;
type ReleaseCommand = z.output<typeof releaseLeases.request>;
type RenewCommand = z.output<typeof renewLeases.request>;
type BorrowCommand = z.output<typeof borrowSlots.request>;
type BorrowReply = z.output<typeof borrowSlots.reply>;
type CancelCommand = z.output<typeof cancelAdmission.request>;

/** How long an endpoint may be unknown: a gateway's catalog may be ahead of ours. */
export const UNKNOWN_ENDPOINT_WAIT_MS = 1_000;
/** What a forwarded command may take beyond the waiting time that it carries. */
const FORWARD_MARGIN_MS = 2_000;

const shuttingDown: Refusal = { code: 'shutting_down', message: 'This router is stopping and takes no new requests. Ask again; another one, or its successor, will answer.', retryAfterMs: 500 };
const overloaded: Refusal = { code: 'service_unavailable', message: 'The router has too many requests under way. Retry shortly.', retryAfterMs: 1_000 };

export interface AdmissionServiceParts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly catalog: LiveProjection<CatalogState>;
  readonly desks: Desks;
  readonly members: RouterMembers;
  readonly link: OwnerLink;
  /** For how long a router that stops waits for requests that it handed over; then their callers are told to ask again. */
  readonly handOverMs: number;
}

/**
 * The router's commands. Whichever instance gets one sends it on unless it owns the endpoint itself. Two that disagree for a moment
 * do not send it round in circles: an instance that stays sends on only to one that outranks it for this endpoint.
 */
export class AdmissionService {
  private readonly stopping = new AbortController();
  private stopTimer: () => void = () => undefined;
  private moving: Promise<unknown> = Promise.resolve();
  /** Admissions that wait at another instance on behalf of a caller of this one. */
  private readonly passing = new Set<Promise<AdmitOutcome | undefined>>();

  constructor(private readonly parts: AdmissionServiceParts) {}

  async admit(command: AdmitCommand): Promise<AdmitOutcome> {
    const endpoint = await this.endpointOf(command.endpointId);
    if (endpoint === undefined) return refused({ code: 'endpoint_not_found', message: `No active endpoint has the id ${command.endpointId}; it may have been retired.`, param: 'endpointId' });
    const passing = this.forwardAdmission(command).finally(() => this.passing.delete(passing));
    this.passing.add(passing);
    const forwarded = await passing;
    if (forwarded !== undefined) return forwarded;
    const { requestId, gatewayId, organisationId, excludedReplicaIds, waitMsMax, priority, weight, promptTokensEstimate, answerTokensMax, prompt, adapter } = command;
    return this.parts.desks.open(endpoint).admit({
      requestId, leaseId: this.parts.ids.next('lease'), gatewayId, organisationId, excludedReplicaIds, waitMsMax, priority, weight, workTokens: promptTokensEstimate + answerTokensMax, prompt, adapter,
    });
  }

  async release(command: ReleaseCommand): Promise<{ released: number }> {
    const byEndpoint = Map.groupBy(command.releases, (release) => release.endpointId);
    const counts = await Promise.all([...byEndpoint].map(async ([endpointId, releases]) => {
      const reply = await this.forwardShort(releaseLeases, endpointId, { releases });
      // A desk is opened even when nothing is known of the leases: should they be handed over just now, they must count as released.
      return reply === 'here' ? this.openActive(endpointId)?.release(releases.map(({ leaseId, outcome, timedOut }) => ({ leaseId, outcome: timedOut ? 'engine-timed-out' as const : outcome }))) : reply?.released;
    }));
    return { released: sum(counts) };
  }

  async renew(command: RenewCommand): Promise<{ renewed: number }> {
    const { gatewayId } = command;
    const byEndpoint = Map.groupBy(command.leases, (lease) => lease.endpointId);
    const counts = await Promise.all([...byEndpoint].map(async ([endpointId, leases]) => {
      const reply = await this.forwardShort(renewLeases, endpointId, { gatewayId, leases });
      return reply === 'here' ? this.openActive(endpointId)?.renew(gatewayId, leases) : reply?.renewed;
    }));
    return { renewed: sum(counts) };
  }

  /** What gateways hold ahead of their requests: each endpoint's report goes to its owner. */
  async borrow({ gatewayId, reports }: BorrowCommand): Promise<BorrowReply> {
    const byOwner = Map.groupBy(reports, (report) => this.parts.members.owner(report.endpointId) ?? '');
    const replies = await Promise.all([...byOwner.values()].map(async (group): Promise<BorrowReply['endpoints']> => {
      const reply = await this.forwardShort(borrowSlots, group[0]?.endpointId ?? '', { gatewayId, reports: group });
      if (reply !== 'here') return reply?.endpoints ?? [];
      return group.flatMap((report) => {
        const loans = this.openActive(report.endpointId)?.borrow(gatewayId, report);
        return loans === undefined ? [] : [{ endpointId: report.endpointId, loans: [...loans] }];
      });
    }));
    return { endpoints: replies.flat() };
  }

  async cancel(command: CancelCommand): Promise<{ cancelled: boolean }> {
    const reply = await this.forwardShort(cancelAdmission, command.endpointId, command);
    if (reply === 'here') return { cancelled: this.parts.desks.find(command.endpointId)?.cancel(command.requestId) ?? false };
    return reply ?? { cancelled: false };
  }

  /** Hands over what other instances own now. Called when the members change; resolves once everything that moves is answered. */
  async handOver(): Promise<void> {
    const moved = this.parts.desks.all().filter((desk) => !this.parts.members.owns(desk.endpointId));
    this.moving = Promise.allSettled([this.moving, ...moved.map((desk) => this.handOverDesk(desk))]);
    await this.moving;
  }

  /** Takes no new requests; those that wait go to the next owner, or are refused when there is none. Resolves once all are answered. */
  async drain(): Promise<void> {
    this.stopTimer = this.parts.timers.after(this.parts.handOverMs, () => this.stopping.abort());
    this.parts.members.leave();
    await this.handOver();
    await Promise.allSettled(this.passing);
  }

  /** Ends its timer. Until then requests that still come in are passed on. */
  close(): void {
    this.stopTimer();
    this.stopping.abort();
  }

  private async handOverDesk(desk: EndpointDesk): Promise<void> {
    this.parts.desks.close(desk);
    const { leases, waiters } = desk.empty();
    const { endpointId } = desk;
    for (const [gatewayId, held] of Map.groupBy(leases, (lease) => lease.gatewayId)) {
      await this.renew({ gatewayId, leases: held.map((lease) => lease.lease) })
        .catch((error: unknown) => this.parts.logger.warn({ err: error, endpointId }, 'leases were not handed over; their renewals will tell the new owner'));
    }
    await Promise.all(waiters.map(async ({ waiter, answer }) => answer(await this.admit(this.commandOf(waiter, endpointId)).catch(unavailable))));
  }

  private commandOf(waiter: Waiter, endpointId: string): AdmitCommand {
    const { requestId, gatewayId, organisationId, latestMs, priority, weight, workTokens, prompt, adapter } = waiter;
    const waitMsMax = Math.max(0, latestMs - this.parts.clock.now());
    return { requestId, gatewayId, organisationId, endpointId, modelName: 'moved', excludedReplicaIds: [...waiter.excludedReplicaIds], promptTokensEstimate: workTokens, answerTokensMax: 0, priority: priority ?? DEFAULT_PRIORITY, weight, waitMsMax, ...(adapter === undefined ? {} : { adapter }), ...(prompt === undefined ? {} : { prompt: { ...prompt, blocks: [...prompt.blocks] } }) };
  }

  /** Undefined when the request is for this instance. */
  private async forwardAdmission(command: AdmitCommand): Promise<AdmitOutcome | undefined> {
    const { endpointId, requestId, waitMsMax } = command;
    try {
      const forwarded = await this.parts.link.forward(admitRequest, endpointId, command, { timeoutMs: waitMsMax + FORWARD_MARGIN_MS, signal: this.stopping.signal });
      if (forwarded.kind === 'replied') return forwarded.reply;
      if (forwarded.kind === 'nobody') return refused(shuttingDown);
      return forwarded.kind === 'overloaded' ? refused(overloaded) : undefined;
    } catch (error) {
      if (!(error instanceof ServiceUnavailableError) || error.reason !== 'aborted') throw error;
      // The caller is about to ask somebody else: its place at the owner goes first, lest it hold two.
      await this.forwardShort(cancelAdmission, endpointId, { requestId, endpointId }).catch(() => undefined);
      return refused(shuttingDown);
    }
  }

  /** Undefined when nobody could carry it out. */
  private async forwardShort<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, endpointId: string, request: z.input<Request>): Promise<z.output<Reply> | 'here' | undefined> {
    const forwarded = await this.parts.link.forward(contract, endpointId, request, { timeoutMs: FORWARD_MARGIN_MS });
    if (forwarded.kind === 'here') return 'here';
    return forwarded.kind === 'replied' && forwarded.reply.kind === 'ok' ? forwarded.reply.value : undefined;
  }

  private openActive(endpointId: string): EndpointDesk | undefined {
    const endpoint = this.activeEndpoint(endpointId);
    return endpoint === undefined ? undefined : this.parts.desks.open(endpoint);
  }

  private endpointOf(endpointId: string): Promise<EndpointState | undefined> {
    const known = this.activeEndpoint(endpointId);
    if (known !== undefined || this.parts.catalog.state().endpoints.has(endpointId)) return Promise.resolve(known);
    return new Promise((resolve) => {
      const done = (endpoint: EndpointState | undefined): void => {
        stopListening();
        cancelTimer();
        resolve(endpoint);
      };
      const stopListening = this.parts.catalog.onChange(() => {
        const endpoint = this.activeEndpoint(endpointId);
        if (endpoint !== undefined) done(endpoint);
      });
      const cancelTimer = this.parts.timers.after(UNKNOWN_ENDPOINT_WAIT_MS, () => done(undefined));
    });
  }

  private activeEndpoint(endpointId: string): EndpointState | undefined {
    const endpoint = this.parts.catalog.state().endpoints.get(endpointId);
    return endpoint?.status === 'active' ? endpoint : undefined;
  }
}

function sum(counts: readonly (number | undefined)[]): number {
  return counts.reduce<number>((total, count) => total + (count ?? 0), 0);
}

/** A waiting request that could not be moved is answered all the same. */
function unavailable(error: unknown): AdmitOutcome {
  const reason = error instanceof ServiceUnavailableError ? error.reason : 'it failed';
  return refused({ code: 'service_unavailable', message: `The next router did not take the request over (${reason}). Retry shortly.`, retryAfterMs: 1_000 });
}
