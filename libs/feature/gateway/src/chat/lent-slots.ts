import { borrowSlots, slotRecall, type Lease } from '@penstock/contract-commands';
import type { FleetState } from '@penstock/domain-lifecycle';
import { SlotPurse, type PurseRequest, type ReplicaOutcome } from '@penstock/domain-routing';
import type { Clock, CommandClient, LiveProjection, Signals, Subscription, Timers } from '@penstock/kernel';

/** How often the router hears what this gateway holds. Far below the time that a loan lives. */
export const REPORT_INTERVAL_MS = 400;
/** A request that found no slot here makes the next report come early, but no sooner after the last one than this. */
const EARLY_REPORT_MS = 40;
const REPORT_TIMEOUT_MS = 1_000;
/** Reports of one message, as its contract allows. */
const REPORTS_PER_MESSAGE = 500;

/** A lease that needs no renewal and no release of its own: its slot belongs to this gateway for a while. */
export class LentLease implements Lease {
  readonly leaseId: string;
  readonly endpointId: string;
  readonly replicaId: string;
  readonly modelVersionId: string;
  readonly url: string;
  readonly engine: Lease['engine'];
  readonly servedModel: string;
  readonly expiresAtMs: number;
  readonly queuedMs = 0;
  readonly coldStart = false;

  constructor(lease: Lease, readonly workTokens: number) {
    this.leaseId = lease.leaseId;
    this.endpointId = lease.endpointId;
    this.replicaId = lease.replicaId;
    this.modelVersionId = lease.modelVersionId;
    this.url = lease.url;
    this.engine = lease.engine;
    this.servedModel = lease.servedModel;
    this.expiresAtMs = lease.expiresAtMs;
  }
}

export interface LentSlotsPorts {
  readonly commands: CommandClient;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** The slots that routers lent this gateway, for all endpoints, and the talk with the routers about them. */
export class LentSlots {
  private readonly purses = new Map<string, SlotPurse>();
  private isTalking = false;
  private talkAgain = false;
  private talkedAtMs = -Infinity;
  private subscription: Subscription | undefined;
  private readonly stops: (() => void)[] = [];

  constructor(private readonly gatewayId: string, private readonly ports: LentSlotsPorts) {
    this.stops.push(ports.timers.every(REPORT_INTERVAL_MS, () => this.reportSoon()));
  }

  /** From here on recalls and changes of the fleet are heard. */
  async start(signals: Signals, fleet: LiveProjection<FleetState>): Promise<void> {
    this.stops.push(fleet.onChange(() => this.follow(fleet.state())));
    this.subscription = await signals.subscribe('tele.recall.*', (data) => {
      const parsed = slotRecall.safeParse(data);
      if (parsed.success && this.purses.get(parsed.data.endpointId)?.recall() === true) this.reportSoon();
    });
  }

  /** A slot of this gateway's own for one request; undefined when the router has to say. */
  take(endpointId: string, excludedReplicaIds: readonly string[], workTokens: number, known: Pick<PurseRequest, 'prompt' | 'memory' | 'adapter' | 'adapters'> = {}): LentLease | undefined {
    const lease = this.purses.get(endpointId)?.take({ excludedReplicaIds, workTokens, ...known }, this.ports.clock.now());
    return lease === undefined ? undefined : new LentLease(lease, workTokens);
  }

  give(lease: LentLease, outcome: ReplicaOutcome): void {
    if (this.purses.get(lease.endpointId)?.give(lease.replicaId, lease.workTokens, outcome) === true) this.reportSoon();
  }

  /** A request that holds a slot of the router's is demand for slots of our own. */
  enter(endpointId: string): void {
    let purse = this.purses.get(endpointId);
    if (purse === undefined) this.purses.set(endpointId, (purse = new SlotPurse(endpointId)));
    purse.enter();
    if (!this.isTalking && this.ports.clock.now() - this.talkedAtMs >= EARLY_REPORT_MS) this.reportSoon();
  }

  leave(endpointId: string): void {
    this.purses.get(endpointId)?.leave();
  }

  /** Tells the routers what is held, together with everything else that happens until the message goes. */
  reportSoon(): void {
    if (this.isTalking) this.talkAgain = true;
    else void this.talk();
  }

  /** Gives everything back. */
  async close(): Promise<void> {
    for (const stop of this.stops) stop();
    await this.subscription?.close();
    let holds = false;
    for (const purse of this.purses.values()) holds = purse.recall() || holds;
    if (holds) await this.talk();
  }

  private async talk(): Promise<void> {
    this.isTalking = true;
    do {
      this.talkAgain = false;
      this.talkedAtMs = this.ports.clock.now();
      await Promise.resolve();
      for (const [endpointId, purse] of this.purses) if (purse.isIdle()) this.purses.delete(endpointId);
      const purses = [...this.purses.values()];
      for (let start = 0; start < purses.length; start += REPORTS_PER_MESSAGE) await this.report(purses.slice(start, start + REPORTS_PER_MESSAGE));
    } while (this.talkAgain);
    this.isTalking = false;
  }

  private async report(purses: readonly SlotPurse[]): Promise<void> {
    const nowMs = this.ports.clock.now();
    const reports = purses.map((purse) => purse.report(nowMs));
    // What was lent stays lent until it expires; the next report tells the same again.
    const reply = await this.ports.commands.send(borrowSlots, { gatewayId: this.gatewayId, reports }, { timeoutMs: REPORT_TIMEOUT_MS }).catch(() => undefined);
    if (reply?.kind !== 'ok') return;
    for (const { endpointId, loans } of reply.value.endpoints) if (this.purses.get(endpointId)?.apply(loans, nowMs) === true) this.talkAgain = true;
  }

  private follow(fleet: FleetState): void {
    for (const purse of this.purses.values()) purse.keepOnly((replicaId) => fleet.replicas.get(replicaId)?.phase === 'ready');
  }
}
