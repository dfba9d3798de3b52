import { routerPresence } from '@penstock/contract-commands';
import type { Clock, Signals, Subscription } from '@penstock/kernel';

/** Which routers are there, by the signals they send each second and by their answers. */
export class RouterWatch {
  private heardAtMs = -Infinity;
  /** While the router is taken for gone, one request in this time still asks it. */
  private askedAtMs = -Infinity;
  private subscription: Subscription | undefined;
  private readonly instances = new Map<string, number>();
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly clock: Clock, private readonly silenceMsMax: number) {}

  async start(signals: Signals): Promise<void> {
    this.subscription = await signals.subscribe('tele.router.*', (data) => {
      this.hear();
      const parsed = routerPresence.safeParse(data);
      if (!parsed.success) return;
      const isNew = !this.instances.has(parsed.data.instanceId);
      this.instances.set(parsed.data.instanceId, this.clock.now());
      if (isNew) for (const listener of this.listeners) listener();
    });
  }

  /** Called when a router is heard for the first time, or again after it was silent: it may know nothing of what is in flight. */
  onNew(listener: () => void): void {
    this.listeners.push(listener);
  }

  hear(): void {
    this.heardAtMs = this.clock.now();
  }

  isHeard(): boolean {
    return this.clock.now() - this.heardAtMs < this.silenceMsMax;
  }

  /** The router processes that are there now; one that was started again counts as another. */
  alive(): readonly string[] {
    const now = this.clock.now();
    for (const [instanceId, heardAtMs] of this.instances) if (now - heardAtMs >= this.silenceMsMax) this.instances.delete(instanceId);
    return [...this.instances.keys()];
  }

  /** False when the router has been silent and another request asks it already: then this one need not wait for the same silence. */
  mayAsk(): boolean {
    if (this.isHeard() || this.clock.now() - this.askedAtMs >= this.silenceMsMax) {
      this.askedAtMs = this.clock.now();
      return true;
    }
    return false;
  }

  async close(): Promise<void> {
    await this.subscription?.close();
  }
}
