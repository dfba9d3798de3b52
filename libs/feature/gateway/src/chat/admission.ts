import { admitRequest, cancelAdmission, type Lease } from '@penstock/contract-commands';
import { CommandFailedError, ServiceUnavailableError, type CommandClient, type Refusal, type Timers } from '@penstock/kernel';
import type { AdapterBeliefs, PriorityClass, PromptTrail, RoutingMemories } from '@penstock/domain-routing';
import type { RunningUsage } from '@penstock/domain-serving';
import type { LeaseBook } from './lease-book.js';
import type { LentSlots } from './lent-slots.js';
import type { ReplicaChooser } from './own-choice.js';
import type { RouterWatch } from './router-watch.js';

export interface AdmissionRequest {
  readonly requestId: string;
  readonly organisationId: string;
  readonly endpointId: string;
  readonly modelName: string;
  readonly excludedReplicaIds: readonly string[];
  readonly promptTokensEstimate: number;
  /** Tokens that the answer may have at most. */
  readonly answerTokensMax: number;
  readonly priority: PriorityClass;
  /** The tenant's share against others of the same class. */
  readonly weight: number;
  readonly traceparent: string | undefined;
  /** What is known of its prompt; left out for requests without one. */
  readonly prompt?: PromptTrail | undefined;
  /** The adapter that it names. */
  readonly adapter?: string | undefined;
  /** How long it may wait in the router's queue; as long as the gateway's setting says when left out. */
  readonly waitMsMax?: number | undefined;
  /** Aborted when the client goes away. Called only when the request has to wait for somebody. */
  readonly signal: () => AbortSignal;
}

export type Admission =
  | { readonly kind: 'granted'; readonly lease: Lease; readonly source: 'slots' | 'router' | 'gateway' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'aborted' };

/** What a reply may take beyond the waiting time that the request carries. */
const REPLY_MARGIN_MS = 3_000;
/** How often a request that waits looks whether the router is still there. */
const SILENCE_CHECK_MS = 500;
/** How many routers one request is put to, one after the other. */
const ROUTERS_ASKED_MAX = 3;
/** Refusals that speak of the router and not of the request. */
const ROUTER_TROUBLE: ReadonlySet<string> = new Set(['shutting_down', 'service_unavailable', 'internal_error', 'endpoint_not_found']);

export interface AdmissionParts {
  readonly gatewayId: string;
  readonly waitMsMax: number;
  readonly commands: CommandClient;
  readonly timers: Timers;
  readonly router: RouterWatch;
  readonly chooser: ReplicaChooser;
  readonly leases: LeaseBook;
  readonly lent: LentSlots;
  /** What this gateway learned of the replicas by the prompts that it sent. */
  readonly memories: RoutingMemories;
  readonly adapters: AdapterBeliefs;
}

/** Gets a slot: one that was lent to this gateway, or from the router, which queues and wakes, or by our own choice while no router is there. */
export class AdmissionDesk {
  constructor(private readonly parts: AdmissionParts) {}

  /** A slot that was lent; undefined when somebody has to be asked. Nothing waits here. */
  admitAtOnce(request: AdmissionRequest): Admission | undefined {
    const { endpointId, excludedReplicaIds, promptTokensEstimate, answerTokensMax, prompt, adapter } = request;
    const { lent, memories, adapters } = this.parts;
    const lease = lent.take(endpointId, excludedReplicaIds, promptTokensEstimate + answerTokensMax, { prompt, memory: prompt === undefined ? undefined : memories.of(endpointId), adapter, adapters });
    if (lease === undefined) return undefined;
    this.parts.leases.take(lease);
    return { kind: 'granted', lease, source: 'slots' };
  }

  async admit(request: AdmissionRequest): Promise<Admission> {
    const admission = await this.decide(request);
    if (admission.kind !== 'granted') return admission;
    this.parts.leases.take(admission.lease);
    // The router's choices tell as much of where an adapter is as this gateway's own.
    if (request.adapter !== undefined) this.parts.adapters.note(admission.lease.replicaId, request.adapter);
    return admission;
  }

  /** An engine answered, and may have said what it had cached of the prompt. What other gateways and routers believe stays as it is. */
  answered({ endpointId, replicaId }: Lease, prompt: PromptTrail | undefined, usage: RunningUsage): void {
    if (prompt !== undefined && usage.cachedKnown) this.parts.memories.find(endpointId)?.correct(replicaId, prompt, usage);
  }

  private async decide(request: AdmissionRequest): Promise<Admission> {
    // A request whose router died while it waited is put to the router that came after it.
    for (let asked = 0; asked < ROUTERS_ASKED_MAX && this.parts.router.mayAsk(); asked += 1) {
      const admission = await this.askRouter(request);
      if (admission !== undefined) return admission;
      if (!this.parts.router.isHeard()) return this.chooseHere(request);
    }
    const own = this.chooseHere(request);
    // Only a router can queue a request or start a replica, so it is worth its silence.
    return own.kind === 'granted' ? own : (await this.askRouter(request)) ?? own;
  }

  private chooseHere(request: AdmissionRequest): Admission {
    const choice = this.parts.chooser.choose(request.endpointId, request.excludedReplicaIds, request.prompt, request.adapter);
    return choice.kind === 'granted' ? { kind: 'granted', lease: choice.lease, source: 'gateway' } : choice;
  }

  /** Undefined when no router is there to answer. */
  private async askRouter(request: AdmissionRequest): Promise<Admission | undefined> {
    const { router, commands, gatewayId } = this.parts;
    const waitMsMax = Math.min(request.waitMsMax ?? Infinity, this.parts.waitMsMax);
    const silence = new AbortController();
    const stopWatching = this.watchSilence(silence);
    const { signal: signalOf, excludedReplicaIds, traceparent, prompt, adapter, ...subject } = request;
    const signal = signalOf();
    try {
      const reply = await commands.send(admitRequest, { ...subject, gatewayId, excludedReplicaIds: [...excludedReplicaIds], waitMsMax, ...(adapter === undefined ? {} : { adapter }), ...(prompt === undefined ? {} : { prompt: { tokens: prompt.tokens, blocks: [...prompt.blocks], session: prompt.session } }) }, {
        timeoutMs: waitMsMax + REPLY_MARGIN_MS, signal: AbortSignal.any([signal, silence.signal]), correlationId: request.requestId, causationId: request.requestId, traceparent,
      });
      router.hear();
      if (reply.kind === 'ok') return this.orGiveBack(reply.value, signal);
      return ROUTER_TROUBLE.has(reply.refusal.code) ? undefined : { kind: 'refused', refusal: reply.refusal };
    } catch (error) {
      if (!(error instanceof ServiceUnavailableError) && !(error instanceof CommandFailedError)) throw error;
      this.cancel(request);
      return signal.aborted ? { kind: 'aborted' } : undefined;
    } finally {
      stopWatching();
    }
  }

  /** A lease that comes after the client left is given back at once. */
  private orGiveBack(lease: Lease, signal: AbortSignal): Admission {
    if (!signal.aborted) return { kind: 'granted', lease, source: 'router' };
    this.parts.leases.take(lease);
    this.parts.leases.release(lease, 'aborted');
    return { kind: 'aborted' };
  }

  private watchSilence(silence: AbortController): () => void {
    const { timers, router } = this.parts;
    const asked = router.alive();
    let checks = 0;
    return timers.every(SILENCE_CHECK_MS, () => {
      checks += 1;
      const alive = router.alive();
      // The answer may be with a router that is gone, even where another one has taken its place.
      if (asked.some((instanceId) => !alive.includes(instanceId))) silence.abort();
      // A router that was never heard of gets as long as one that fell silent.
      if (checks > 2 && !router.isHeard()) silence.abort();
    });
  }

  private cancel({ requestId, endpointId }: AdmissionRequest): void {
    // The router may be gone; a place that nobody takes is dropped when its wait is over.
    this.parts.commands.send(cancelAdmission, { requestId, endpointId }).catch(() => undefined);
  }
}
