import type { Clock, Timers } from '@penstock/kernel';

/** A pull under way. */
export interface RunningTransfer {
  leftBytes(): number;
  /** Breaks it off. */
  cancel(): void;
}

interface Transfer {
  readonly nodeId: string;
  readonly capBps: number;
  readonly onDone: () => void;
  leftBytes: number;
  rateBps: number;
}

/** Rounding leaves less than this of a transfer that is over. */
const REST_BYTES = 1;
const MS_PER_SECOND = 1_000;

/**
 * Pulls that share what the registry gives, each node's pulls sharing its network too, by max-min fairness: nobody gets
 * more while somebody with less could have it. Rates change whenever a pull begins or ends.
 */
export class SharedTransfers {
  private readonly active = new Set<Transfer>();
  private lastMs: number;
  private cancelTimer: (() => void) | undefined;

  constructor(private readonly clock: Clock, private readonly timers: Timers, private readonly registryBps: number, private readonly timeScale: number) {
    this.lastMs = clock.now();
  }

  /** Bytes per second that a node's pulls get now, for whoever looks. */
  rateOf(nodeId: string): number {
    return [...this.active].filter((transfer) => transfer.nodeId === nodeId).reduce((sum, transfer) => sum + transfer.rateBps, 0);
  }

  /** Calls `onDone` once the bytes are there. */
  start(nodeId: string, bytes: number, capBps: number, onDone: () => void): RunningTransfer {
    this.advance();
    const transfer: Transfer = { nodeId, capBps, onDone, leftBytes: bytes, rateBps: 0 };
    this.active.add(transfer);
    this.reschedule();
    return {
      leftBytes: () => Math.max(0, transfer.leftBytes - transfer.rateBps * this.secondsSince()),
      cancel: () => {
        if (!this.active.has(transfer)) return;
        this.advance();
        this.active.delete(transfer);
        this.reschedule();
      },
    };
  }

  private secondsSince(): number {
    return (this.clock.now() - this.lastMs) / MS_PER_SECOND / this.timeScale;
  }

  private advance(): void {
    const seconds = this.secondsSince();
    this.lastMs = this.clock.now();
    for (const transfer of this.active) transfer.leftBytes -= transfer.rateBps * seconds;
  }

  private reschedule(): void {
    this.cancelTimer?.();
    this.cancelTimer = undefined;
    if (this.active.size === 0) return;
    this.share();
    const nextMs = Math.min(...[...this.active].map((transfer) => (Math.max(0, transfer.leftBytes) / transfer.rateBps) * MS_PER_SECOND * this.timeScale));
    // Whole milliseconds, rounded up, so that what a timer finds is over.
    this.cancelTimer = this.timers.after(Math.ceil(nextMs), () => this.finishDue());
  }

  private finishDue(): void {
    this.cancelTimer = undefined;
    this.advance();
    const done = [...this.active].filter((transfer) => transfer.leftBytes <= REST_BYTES);
    for (const transfer of done) this.active.delete(transfer);
    this.reschedule();
    for (const transfer of done) transfer.onDone();
  }

  /** Water-filling: the scarcest link fixes the rates of what goes through it, then the next one. */
  private share(): void {
    const byNode = Map.groupBy(this.active, (transfer) => transfer.nodeId);
    let registryLeft = this.registryBps;
    let flowsLeft = this.active.size;
    const nodes = [...byNode.values()].map((flows) => ({ flows, perFlow: (flows[0]?.capBps ?? 0) / flows.length })).sort((one, other) => one.perFlow - other.perFlow);
    for (const { flows, perFlow } of nodes) {
      const rate = Math.min(perFlow, registryLeft / flowsLeft);
      for (const flow of flows) flow.rateBps = rate;
      registryLeft -= rate * flows.length;
      flowsLeft -= flows.length;
    }
  }
}
