import { routerPresence } from '@penstock/contract-commands';
import { ownerOf } from '@penstock/domain-routing';
import type { Clock, Signals, Subscription, Timers } from '@penstock/kernel';

/** How often an instance says that it is there. */
export const PRESENCE_INTERVAL_MS = 1_000;
/** An instance that was not heard for so long owns nothing any more. */
export const PRESENCE_TIMEOUT_MS = 3_500;
/** More instances than this in one installation is a fault. */
const MEMBERS_MAX = 256;

export interface MembersPorts {
  readonly clock: Clock;
  readonly signals: Signals;
  readonly timers: Timers;
}

/** The router instances that are alive, as far as this one hears, and who of them owns an endpoint. */
export class RouterMembers {
  private readonly heardAtMs = new Map<string, number>();
  private readonly startedAtMs: number;
  private readonly listeners = new Set<() => void>();
  private subscription: Subscription | undefined;
  private stopTimer: () => void = () => undefined;
  /** True once this instance owns nothing any more. */
  isLeaving = false;
  /** When the set of members changed last; the start counts. */
  changedAtMs: number;

  constructor(readonly instanceId: string, private readonly ports: MembersPorts) {
    this.startedAtMs = ports.clock.now();
    this.changedAtMs = this.startedAtMs;
  }

  async start(): Promise<void> {
    this.subscription = await this.ports.signals.subscribe('tele.router.*', (data) => this.hear(data));
    this.announce();
    this.stopTimer = this.ports.timers.every(PRESENCE_INTERVAL_MS, () => this.beat());
  }

  /** The owner of an endpoint; undefined when this instance leaves and no other one is there. */
  owner(endpointId: string): string | undefined {
    if (this.heardAtMs.size === 0) return this.isLeaving ? undefined : this.instanceId;
    return ownerOf(endpointId, this.isLeaving ? this.heardAtMs.keys() : [this.instanceId, ...this.heardAtMs.keys()]);
  }

  owns(endpointId: string): boolean {
    return this.owner(endpointId) === this.instanceId;
  }

  /** The other instances. */
  others(): readonly string[] {
    return [...this.heardAtMs.keys()];
  }

  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** An instance that does not answer is not there, until it is heard again. */
  lose(instanceId: string): void {
    if (this.heardAtMs.delete(instanceId)) this.changed();
  }

  /** This instance takes no more requests: its endpoints belong to the others from now on. */
  leave(): void {
    if (this.isLeaving) return;
    this.isLeaving = true;
    this.announce();
    this.changed();
  }

  async close(): Promise<void> {
    this.stopTimer();
    await this.subscription?.close();
  }

  private beat(): void {
    this.announce();
    const deadline = this.ports.clock.now() - PRESENCE_TIMEOUT_MS;
    for (const [instanceId, atMs] of this.heardAtMs) if (atMs <= deadline) this.lose(instanceId);
  }

  private hear(data: unknown): void {
    const parsed = routerPresence.safeParse(data);
    if (!parsed.success || parsed.data.instanceId === this.instanceId) return;
    const { instanceId, isLeaving } = parsed.data;
    if (isLeaving) {
      this.lose(instanceId);
      return;
    }
    const isNew = !this.heardAtMs.has(instanceId);
    if (isNew && this.heardAtMs.size >= MEMBERS_MAX) return;
    this.heardAtMs.set(instanceId, this.ports.clock.now());
    if (!isNew) return;
    // The newcomer learns of this instance now and not only at the next beat.
    this.announce();
    this.changed();
  }

  private announce(): void {
    const presence = { instanceId: this.instanceId, sentAtMs: this.ports.clock.now(), startedAtMs: this.startedAtMs, isLeaving: this.isLeaving };
    this.ports.signals.publish(`tele.router.${this.instanceId}`, presence);
  }

  private changed(): void {
    this.changedAtMs = this.ports.clock.now();
    for (const listener of this.listeners) listener();
  }
}
