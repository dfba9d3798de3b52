import type { Clock, Signals, Subscription } from '@penstock/kernel';
import { z } from 'zod';

/** An own signal that does not come back for this long means that the broker is out of reach. */
export const ECHO_TIMEOUT_MS = 3_000;

const presence = z.object({ instanceId: z.string().max(128) });

/** Peers beyond this many are not remembered; more schedulers than this is a mistake in deployment. */
const PEERS_MAX = 100;

/**
 * Hears the signals of all schedulers, the own ones too. The own echo tells whether the broker can be reached, which the
 * lack of somebody else's heartbeats does not. Among schedulers that hear each other the lowest id acts and the others
 * stand by. That only saves work: safety comes from the ledger, for two that do not hear each other both act.
 */
export class PeerWatch {
  private readonly heardAtMs = new Map<string, number>();
  private subscription: Subscription | undefined;
  private graceFromMs: number;

  constructor(private readonly instanceId: string, private readonly clock: Clock, private readonly signals: Signals) {
    this.graceFromMs = clock.now();
  }

  async start(): Promise<void> {
    this.subscription = await this.signals.subscribe('tele.scheduler.*', (data) => this.hear(data));
    this.announce();
  }

  announce(): void {
    this.signals.publish(`tele.scheduler.${this.instanceId}`, { instanceId: this.instanceId });
  }

  /** Since when heartbeats can be expected to arrive: the start, or the return of the broker after it was away. */
  expectingSinceMs(): number {
    return this.graceFromMs;
  }

  isConnected(): boolean {
    return this.isFresh(this.heardAtMs.get(this.instanceId));
  }

  isActing(): boolean {
    for (const [peer, atMs] of this.heardAtMs) if (peer < this.instanceId && this.isFresh(atMs)) return false;
    return true;
  }

  async close(): Promise<void> {
    await this.subscription?.close();
  }

  private hear(data: unknown): void {
    const parsed = presence.safeParse(data);
    if (!parsed.success) return;
    const { instanceId } = parsed.data;
    if (instanceId === this.instanceId && !this.isConnected()) this.graceFromMs = this.clock.now();
    for (const [peer, atMs] of this.heardAtMs) if (!this.isFresh(atMs)) this.heardAtMs.delete(peer);
    if (this.heardAtMs.size < PEERS_MAX || this.heardAtMs.has(instanceId)) this.heardAtMs.set(instanceId, this.clock.now());
  }

  private isFresh(atMs: number | undefined): boolean {
    return atMs !== undefined && this.clock.now() - atMs <= ECHO_TIMEOUT_MS;
  }
}
