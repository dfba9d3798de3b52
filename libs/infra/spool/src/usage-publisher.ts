import type { UsageRecordedV1 } from '@penstock/contract-events';
import { usageRef } from '@penstock/domain-usage';
import type { AppendRequest, EventLog, Logger } from '@penstock/kernel';

/** Appends on their way at once. */
const IN_FLIGHT_MAX = 64;
/** Records of one append: one answer of the broker confirms them all. */
const RECORDS_PER_APPEND = 100;
/** Records gather this long. */
const GATHER_MS = 25;
const BACK_OFF_MS_MIN = 100;
const BACK_OFF_MS_MAX = 5_000;

interface Entry {
  readonly record: UsageRecordedV1;
  /** The record as JSON; undefined for one that another process wrote, which is checked like anybody's. */
  readonly json: string | undefined;
  /** False once the broker may have it: it goes alone then, so that a repeat is recognised and nothing else with it. */
  readonly isFirst: boolean;
  /** W3C trace context of the request, which is gone after a crash. */
  readonly traceparent: string | undefined;
}

/**
 * Sends settled usage to the event log, again and again until it has it. The event's id follows from the request's and how it ended,
 * so a repeat is the same event. Records of one subject that were never sent before go together.
 */
export class UsagePublisher {
  private queue: Entry[] = [];
  private waiting = 0;
  private inFlight = 0;
  private backOffMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private isBackingOff = false;
  private idleWaiters: (() => void)[] = [];

  constructor(private readonly log: EventLog, private readonly logger: Logger, private readonly source: string, private readonly onPublished: (record: UsageRecordedV1) => void) {}

  get unpublished(): number {
    return this.waiting;
  }

  add(entry: Entry): void {
    this.waiting += 1;
    // A batch job may run a request again under its id after a crash, so its records go alone.
    this.queue.push(entry.isFirst && entry.record.batchId !== null ? { ...entry, isFirst: false } : entry);
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

  private pumpAfter(delayMs: number): void {
    if (this.timer !== undefined || this.isStopped) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.isBackingOff = false;
      this.pump();
    }, delayMs).unref();
  }

  private pump(): void {
    const groups = this.takeGroups();
    for (const [index, group] of groups.entries()) {
      if (this.inFlight >= IN_FLIGHT_MAX || this.isStopped) {
        this.queue = [...groups.slice(index).flat(), ...this.queue];
        break;
      }
      this.inFlight += 1;
      void this.publish(group);
    }
  }

  /** What waits, oldest first, as it goes out: no more than can be under way. */
  private takeGroups(): Entry[][] {
    const room = IN_FLIGHT_MAX - this.inFlight;
    const groups: Entry[][] = [];
    const open = new Map<string, Entry[]>();
    let taken = 0;
    for (; taken < this.queue.length && groups.length < room; taken += 1) {
      const entry = this.queue[taken];
      if (entry === undefined) break;
      const subject = entry.isFirst ? `${entry.record.organisationId}/${entry.record.endpointId}` : '';
      const group = entry.isFirst ? open.get(subject) : undefined;
      if (group !== undefined && group.length < RECORDS_PER_APPEND) {
        group.push(entry);
        continue;
      }
      const started = [entry];
      groups.push(started);
      if (entry.isFirst) open.set(subject, started);
    }
    this.queue = this.queue.slice(taken);
    return groups;
  }

  private async publish(group: readonly Entry[]): Promise<void> {
    try {
      await this.log.append(this.requestOf(group));
      this.inFlight -= 1;
      this.waiting -= group.length;
      this.backOffMs = 0;
      for (const { record } of group) this.onPublished(record);
      if (this.unpublished === 0) for (const resolve of this.idleWaiters.splice(0)) resolve();
      if (this.queue.length > 0) this.pumpAfter(GATHER_MS);
    } catch (error) {
      this.inFlight -= 1;
      for (const entry of group) this.queue.push({ ...entry, isFirst: false });
      this.backOff(error);
    }
  }

  private requestOf(group: readonly Entry[]): AppendRequest {
    const origins = group.map(({ record, traceparent }) => ({ commandId: eventCommandId(record), traceparent, correlationId: record.requestId, causationId: record.requestId, nowMs: Date.parse(record.startedAt) + Math.round(record.durationMs) }));
    const [first] = group;
    const [origin] = origins;
    if (first === undefined || origin === undefined) throw new TypeError('nothing to publish');
    const events = group.map(({ record, json }, index) => ({ type: 'usage.recorded.v1', data: record, json, origin: group.length === 1 ? undefined : origins[index] }));
    return { ref: usageRef(first.record), events, expected: 'any', source: this.source, ...origin };
  }

  private backOff(error: unknown): void {
    if (this.isStopped || this.isBackingOff) return;
    this.isBackingOff = true;
    this.backOffMs = Math.min(Math.max(this.backOffMs * 2, BACK_OFF_MS_MIN), BACK_OFF_MS_MAX);
    this.logger.warn({ err: error, unpublished: this.unpublished, retryInMs: this.backOffMs }, 'usage waits for the event log');
    clearTimeout(this.timer);
    this.timer = undefined;
    this.pumpAfter(this.backOffMs);
  }
}

/** A request that is run again after a crash may end in another way; that is another event, and sinks decide which counts. */
function eventCommandId({ requestId, status }: UsageRecordedV1): string {
  return status === 'completed' ? requestId : `${requestId}_${status}`;
}
