import type { Lease, LoanReport, ReplicaLoan } from '@penstock/contract-commands';
import {
  admit, cancel, createAdmissionState, expire, needsWake, probeEnded, refuseAllWaiting, release, renew, reportLoans, syncReplicas, takeProbes,
  type AdapterBeliefs, type AdmissionEffect, type AdmissionRequest, type AdmissionSettings, type AdmissionState, type EndpointFleet, type HeldLease, type Release, type ReplicaOutcome, type RoutingMemory, type TokenProbe, type Waiter,
} from '@penstock/domain-routing';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import { assert, type Clock, type Refusal } from '@penstock/kernel';
import type { CircuitEffect } from './circuit-journal.js';
import type { RouterMetrics } from './router-metrics.js';

export type AdmitOutcome = HandlerOutcome<Lease>;

export interface DeskOptions {
  readonly clock: Clock;
  readonly metrics: RouterMetrics;
  readonly onWake: (desk: EndpointDesk, waiting: number) => void;
  readonly onCircuit: (effect: CircuitEffect) => void;
  /** Requests wait while gateways hold slots ahead of need. */
  readonly onRecall: (endpointId: string) => void;
  /** What this instance knows of the adapters of all replicas. */
  readonly adapters: AdapterBeliefs;
}

/** What a desk still held when it closed: for the next owner. */
export interface DeskContents {
  readonly leases: readonly HeldLease[];
  readonly waiters: readonly { readonly waiter: Waiter; readonly answer: (outcome: AdmitOutcome) => void }[];
}

/** The owner's shell around the admission state of one endpoint: it turns effects into answers. */
export class EndpointDesk {
  readonly state: AdmissionState;
  private readonly answers = new Map<string, (outcome: AdmitOutcome) => void>();

  constructor(settings: AdmissionSettings, grantsFromMs: number, private readonly options: DeskOptions, memory: RoutingMemory) {
    this.state = createAdmissionState(settings, grantsFromMs, memory, options.adapters);
  }

  get endpointId(): string {
    return this.state.settings.endpointId;
  }

  /** Resolves with the lease or the refusal, at the latest when the request's waiting time is over. */
  admit(request: AdmissionRequest): Promise<AdmitOutcome> {
    return new Promise((resolve) => {
      this.answers.set(request.leaseId, resolve);
      this.carryOut(admit(this.state, request, this.options.clock.now()));
    });
  }

  release(releases: readonly Release[]): number {
    const { released, effects } = release(this.state, releases, this.options.clock.now());
    this.carryOut(effects);
    return released;
  }

  renew(gatewayId: string, leases: readonly Lease[]): number {
    return renew(this.state, gatewayId, leases, this.options.clock.now());
  }

  /** What the gateway may hold from now on; undefined when a newer report overtook this one. */
  borrow(gatewayId: string, report: LoanReport): readonly ReplicaLoan[] | undefined {
    const answer = reportLoans(this.state, gatewayId, report, this.options.clock.now());
    if (answer !== undefined) this.carryOut(answer.effects);
    return answer?.loans;
  }

  cancel(requestId: string): boolean {
    const waiter = this.state.waiting.get(requestId);
    const { cancelled, effects } = cancel(this.state, requestId, this.options.clock.now());
    if (waiter !== undefined) {
      this.options.metrics.admissionEnded('cancelled');
      this.answer(waiter.leaseId, refused({ code: 'request_timeout', message: 'The caller cancelled the request while it waited.' }));
    }
    this.carryOut(effects);
    return cancelled;
  }

  sync(settings: AdmissionSettings, fleet: EndpointFleet): void {
    this.state.settings = settings;
    this.carryOut(syncReplicas(this.state, fleet, this.options.clock.now()));
  }

  /** Lets time pass. */
  tick(): void {
    const { expired, effects } = expire(this.state, this.options.clock.now());
    this.options.metrics.leasesExpired(expired);
    this.carryOut(effects);
  }

  /** Replicas that are to be probed now. */
  takeProbes(): readonly TokenProbe[] {
    return takeProbes(this.state, this.options.clock.now());
  }

  probeEnded(replicaId: string, outcome: ReplicaOutcome): void {
    this.carryOut(probeEnded(this.state, replicaId, outcome, this.options.clock.now()));
  }

  refuseAll(refusal: Refusal): void {
    this.carryOut(refuseAllWaiting(this.state, refusal));
  }

  needsWake(): boolean {
    return needsWake(this.state);
  }

  /** Takes everything out; nobody is answered by this desk any more. */
  empty(): DeskContents {
    const waiters = [...this.state.waiting.values()].map((waiter) => {
      const answer = this.answers.get(waiter.leaseId);
      assert(answer !== undefined, 'every waiting request has somebody who waits for its answer');
      return { waiter, answer };
    });
    const leases = [...this.state.leases.values()];
    this.state.waiting.clear();
    this.state.order.clear();
    this.state.waitingByTenant.clear();
    this.state.leases.clear();
    // The next owner hears of loans from the gateways.
    this.state.loans.clear();
    this.answers.clear();
    return { leases, waiters };
  }

  private carryOut(effects: readonly AdmissionEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'grant':
          this.options.metrics.granted(effect.lease.queuedMs, effect.lease.coldStart);
          this.answer(effect.leaseId, ok(effect.lease));
          break;
        case 'refuse':
          this.options.metrics.admissionEnded(effect.refusal.code);
          this.answer(effect.leaseId, refused(effect.refusal));
          break;
        case 'wake':
          this.options.onWake(this, effect.waiting);
          break;
        case 'recall':
          this.options.onRecall(effect.endpointId);
          break;
        default:
          this.options.metrics.circuitChanged(effect.kind === 'circuit-opened' ? 'opened' : 'closed');
          this.options.onCircuit(effect);
      }
    }
  }

  private answer(leaseId: string, outcome: AdmitOutcome): void {
    const resolve = this.answers.get(leaseId);
    this.answers.delete(leaseId);
    resolve?.(outcome);
  }
}
