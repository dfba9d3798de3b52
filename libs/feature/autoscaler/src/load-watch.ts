import { endpointLoad, type EndpointLoad } from '@penstock/contract-commands';
import type { EndpointLoadReading } from '@penstock/domain-scaling';
import type { Clock, Signals, Subscription } from '@penstock/kernel';

interface Reading {
  readonly load: EndpointLoad;
  readonly receivedAtMs: number;
}

/** Names that are no endpoints are not remembered beyond this many. */
const REMEMBERED_MAX = 50_000;

/** What routers said last about each endpoint. */
export class LoadWatch {
  private readonly readings = new Map<string, Reading>();
  private subscription: Subscription | undefined;

  constructor(private readonly clock: Clock, private readonly signals: Signals, private readonly freshMs: number) {}

  async start(): Promise<void> {
    this.subscription = await this.signals.subscribe('tele.endpoint.*', (data) => {
      const parsed = endpointLoad.safeParse(data);
      if (!parsed.success) return;
      const { endpointId } = parsed.data;
      if (this.readings.size < REMEMBERED_MAX || this.readings.has(endpointId)) this.readings.set(endpointId, { load: parsed.data, receivedAtMs: this.clock.now() });
    });
  }

  read(endpointId: string): EndpointLoadReading {
    const reading = this.readings.get(endpointId);
    if (reading === undefined || this.clock.now() - reading.receivedAtMs > this.freshMs) return { kind: 'unknown' };
    const { waiting, running, lastRequestAtMs } = reading.load;
    return { kind: 'known', waiting, running, lastRequestAtMs };
  }

  /** Forgets endpoints that `keep` does not know. */
  prune(keep: (endpointId: string) => boolean): void {
    for (const endpointId of this.readings.keys()) if (!keep(endpointId)) this.readings.delete(endpointId);
  }

  async close(): Promise<void> {
    await this.subscription?.close();
  }
}
