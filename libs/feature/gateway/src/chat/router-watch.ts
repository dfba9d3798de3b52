import type { Clock, Signals, Subscription } from '@penstock/kernel';

/** Whether any router is there, by the signals routers send each second and by their answers. */
export class RouterWatch {
  private heardAtMs = -Infinity;
  /** While the router is taken for gone, one request in this time still asks it. */
  private askedAtMs = -Infinity;
  private subscription: Subscription | undefined;

  constructor(private readonly clock: Clock, private readonly silenceMsMax: number) {}

  async start(signals: Signals): Promise<void> {
    this.subscription = await signals.subscribe('tele.router.*', () => this.hear());
  }

  hear(): void {
    this.heardAtMs = this.clock.now();
  }

  isHeard(): boolean {
    return this.clock.now() - this.heardAtMs < this.silenceMsMax;
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
