import type { StreamName } from '@penstock/contract-events';
import { EventLogUnavailableError, type AggregateRef, type AppendRequest, type AppendResult, type BatchHandler, type EventLog, type ReadOptions, type RecordedEvent, type StreamBounds, type Subscription, type Timers } from '@penstock/kernel';
import type { SharedLog } from './shared-log.js';

export interface Crash {
  /** Counted over the appends of one life of the process, from 1. */
  readonly atAppend: number;
  /** Whether the append that it dies in is stored. */
  readonly isStored: boolean;
}

const LATENCY_MS_MAX = 6;
const LAG_MS_MAX = 60;
const SLOW_LAG_MS_MAX = 4_000;
const REDELIVERED_MAX = 5;
const REDELIVERY_CHANCE = 0.1;
const PARTIAL_CHANCE = 0.2;
/** A reply that got lost is noticed after this long. */
const TIMEOUT_MS = 500;

interface Tail {
  readonly stream: StreamName;
  readonly onBatch: BatchHandler;
  next: number;
  isDue: boolean;
  isClosed: boolean;
}

/**
 * One process's way to the log: calls take time, events come late, in pieces and sometimes twice, each stream at its own pace;
 * the link can be cut, and the process can die in any of its appends.
 */
export class LogLink implements EventLog {
  appends = 0;
  isSlow = false;
  crash: Crash | undefined;
  private isCut = false;
  private isDead = false;
  private readonly tails = new Set<Tail>();
  private readonly stop: () => void;

  constructor(private readonly shared: SharedLog, private readonly timers: Timers, private readonly random: () => number, private readonly onCrash: (crash: Crash) => void) {
    this.stop = shared.onChange(() => this.wake());
  }

  setCut(isCut: boolean): void {
    this.isCut = isCut;
    if (!isCut) this.wake();
  }

  die(): void {
    this.isDead = true;
    this.stop();
    this.tails.clear();
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    await this.travel();
    this.appends += 1;
    if (this.crash !== undefined && this.appends >= this.crash.atAppend) {
      const { isStored } = this.crash;
      this.crash = undefined;
      this.die();
      if (isStored) await this.shared.append(request);
      this.onCrash({ atAppend: this.appends, isStored });
      return forever();
    }
    const result = await this.shared.append(request);
    await this.travel();
    return result;
  }

  async load(ref: AggregateRef, afterSequence?: number): Promise<readonly RecordedEvent[]> {
    await this.travel();
    return this.shared.memory.load(ref, afterSequence);
  }

  async *read(stream: StreamName, options?: ReadOptions): AsyncIterable<readonly RecordedEvent[]> {
    await this.travel();
    yield* this.shared.memory.read(stream, options);
  }

  async bounds(stream: StreamName): Promise<StreamBounds> {
    await this.travel();
    return this.shared.memory.bounds(stream);
  }

  async tail(stream: StreamName, fromSequence: number, onBatch: BatchHandler): Promise<Subscription> {
    const tail: Tail = { stream, onBatch, next: fromSequence, isDue: false, isClosed: false };
    this.tails.add(tail);
    this.schedule(tail);
    return {
      close: async () => {
        tail.isClosed = true;
        this.tails.delete(tail);
      },
    };
  }

  /** A request, or a reply, on its way. */
  private async travel(): Promise<void> {
    if (this.isDead) return forever();
    const isLost = this.isCut;
    await new Promise<void>((resolve) => this.timers.after(isLost ? TIMEOUT_MS : 1 + this.random() * LATENCY_MS_MAX, resolve));
    if (this.isDead) return forever();
    if (isLost || this.isCut) throw new EventLogUnavailableError('the link is cut');
  }

  private wake(): void {
    for (const tail of this.tails) this.schedule(tail);
  }

  private schedule(tail: Tail): void {
    if (tail.isDue || tail.isClosed || this.isCut || this.isDead || tail.next > this.shared.memory.all(tail.stream).length) return;
    tail.isDue = true;
    this.timers.after(this.random() * (this.isSlow ? SLOW_LAG_MS_MAX : LAG_MS_MAX), () => void this.deliver(tail));
  }

  private async deliver(tail: Tail): Promise<void> {
    tail.isDue = false;
    if (tail.isClosed || this.isCut || this.isDead) return;
    const events = this.shared.memory.all(tail.stream);
    const through = this.random() < PARTIAL_CHANCE ? tail.next + Math.floor(this.random() * (events.length - tail.next + 1)) : events.length;
    const from = this.random() < REDELIVERY_CHANCE ? Math.max(1, tail.next - Math.ceil(this.random() * REDELIVERED_MAX)) : tail.next;
    tail.next = through + 1;
    await tail.onBatch(events.slice(from - 1, through), through);
    this.schedule(tail);
  }
}

function forever(): Promise<never> {
  return new Promise(() => undefined);
}
