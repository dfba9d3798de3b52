import { USAGE_RECORDS_MAX } from '@penstock/contract-events';
import type { EventLog, Logger } from '@penstock/kernel';
import { appendRequestOf, joinedOf, packParcels, type UsageEntry, type UsageParcel } from './usage-parcel.js';

/** Appends on their way at once. */
const IN_FLIGHT_MAX = 64;
/** Records gather this long, or until one event is full: what waits has to be moved by the garbage collector. */
const GATHER_MS = 50;
/** How soon what found no room tries again. */
const NO_ROOM_DELAY_MS = 5;
const BACK_OFF_MS_MIN = 100;
const BACK_OFF_MS_MAX = 5_000;

export interface UsagePublisherOptions {
  readonly log: EventLog;
  readonly logger: Logger;
  /** CloudEvents source of the records. */
  readonly source: string;
  /** Called before records go out that share an event, so that whoever sends them again after a crash can make the same event of them. */
  readonly onJoined: (requestIds: readonly string[]) => void;
  readonly onPublished: (parcel: UsageParcel) => void;
}

/**
 * Sends settled usage to the event log, again and again until it has it. An event's id follows from the requests in it and how they
 * ended, so a repeat is the same event. Records of one subject that were never sent before share one event.
 */
export class UsagePublisher {
  private queue: readonly UsageEntry[] = [];
  private fresh: UsageEntry[] = [];
  /** What the broker may have already. */
  private again: UsageParcel[] = [];
  private waiting = 0;
  private inFlight = 0;
  private backOffMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private isBackingOff = false;
  private willPump = false;
  private idleWaiters: (() => void)[] = [];

  constructor(private readonly options: UsagePublisherOptions) {}

  get unpublished(): number {
    return this.waiting;
  }

  add(entry: UsageEntry): void {
    this.waiting += 1;
    // A batch job may run a request again under its id after a crash, so its records go alone.
    this.fresh.push(entry.mayJoin && entry.record.batchId !== null ? { ...entry, mayJoin: false } : entry);
    if (this.fresh.length < USAGE_RECORDS_MAX) this.pumpAfter(GATHER_MS);
    else this.pumpSoon();
  }

  /** Records that an earlier process had put into one event, which the broker may have. */
  addJoined(parcel: UsageParcel): void {
    this.waiting += parcel.length;
    this.again.push(parcel);
    this.pumpAfter(GATHER_MS);
  }

  /** Resolves once everything added is published, or after `timeoutMs`. */
  async idle(timeoutMs: number): Promise<void> {
    if (this.unpublished === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.idleWaiters.push(resolve);
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** In this turn of the event loop, but not in the middle of somebody's request. */
  private pumpSoon(): void {
    if (this.willPump || this.isStopped || this.isBackingOff) return;
    if (this.inFlight >= IN_FLIGHT_MAX) return this.pumpAfter(GATHER_MS);
    this.willPump = true;
    setImmediate(() => {
      this.willPump = false;
      if (!this.isStopped && !this.isBackingOff) this.pump();
    });
  }

  private pumpAfter(delayMs: number): void {
    if (this.timer !== undefined || this.isStopped) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.isBackingOff = false;
      this.pump();
    }, delayMs).unref();
  }

  /** Sends as much as may be under way, what was sent before first. */
  private pump(): void {
    const repeated = this.again.splice(0, IN_FLIGHT_MAX - this.inFlight);
    const { parcels, rest } = packParcels([...this.queue, ...this.fresh], IN_FLIGHT_MAX - this.inFlight - repeated.length);
    this.queue = rest;
    this.fresh = [];
    for (const parcel of parcels) this.tellJoined(parcel);
    this.inFlight += repeated.length + parcels.length;
    for (const parcel of repeated) void this.publish(parcel);
    for (const parcel of parcels) void this.publish(parcel);
  }

  private tellJoined(parcel: UsageParcel): void {
    const joined = joinedOf(parcel);
    if (joined.length > 1) this.options.onJoined(joined.map(({ record }) => record.requestId));
  }

  private async publish(parcel: UsageParcel): Promise<void> {
    try {
      await this.options.log.append(appendRequestOf(parcel, this.options.source));
      this.inFlight -= 1;
      this.waiting -= parcel.length;
      this.backOffMs = 0;
      this.options.onPublished(parcel);
      if (this.unpublished === 0) for (const resolve of this.idleWaiters.splice(0)) resolve();
      if (this.queue.length > 0 || this.again.length > 0) this.pumpAfter(NO_ROOM_DELAY_MS);
    } catch (error) {
      this.inFlight -= 1;
      this.again.push(parcel);
      this.backOff(error);
    }
  }

  private backOff(error: unknown): void {
    if (this.isStopped || this.isBackingOff) return;
    this.isBackingOff = true;
    this.backOffMs = Math.min(Math.max(this.backOffMs * 2, BACK_OFF_MS_MIN), BACK_OFF_MS_MAX);
    this.options.logger.warn({ err: error, unpublished: this.unpublished, retryInMs: this.backOffMs }, 'usage waits for the event log');
    clearTimeout(this.timer);
    this.timer = undefined;
    this.pumpAfter(this.backOffMs);
  }
}
