import type { UsageRecordedV1 } from '@penstock/contract-events';
import { usageRef } from '@penstock/domain-usage';
import type { EventLog, Logger } from '@penstock/kernel';

/** Appends on their way at once. */
const IN_FLIGHT_MAX = 256;
const COMPACT_AFTER = 10_000;
const BACK_OFF_MS_MIN = 100;
const BACK_OFF_MS_MAX = 5_000;

/** Sends settled usage to the event log, again and again until it has it. The event's id follows from the request's and how it ended, so a repeat is the same event. */
export class UsagePublisher {
  private queue: UsageRecordedV1[] = [];
  private readonly traceparents = new Map<string, string>();
  /** Where the queue begins: shifting a long array would copy it each time. */
  private head = 0;
  private inFlight = 0;
  private backOffMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  private idleWaiters: (() => void)[] = [];

  constructor(private readonly log: EventLog, private readonly logger: Logger, private readonly source: string, private readonly onPublished: (record: UsageRecordedV1) => void) {}

  get unpublished(): number {
    return this.queue.length - this.head + this.inFlight;
  }

  add(record: UsageRecordedV1, traceparent?: string): void {
    if (traceparent !== undefined) this.traceparents.set(record.requestId, traceparent);
    this.queue.push(record);
    this.pump();
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

  private pump(): void {
    while (!this.isStopped && this.timer === undefined && this.inFlight < IN_FLIGHT_MAX) {
      const record = this.take();
      if (record === undefined) break;
      this.inFlight += 1;
      void this.publish(record);
    }
  }

  private take(): UsageRecordedV1 | undefined {
    const record = this.queue[this.head];
    if (record === undefined) return undefined;
    this.head += 1;
    if (this.head >= COMPACT_AFTER || this.head === this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    return record;
  }

  private async publish(record: UsageRecordedV1): Promise<void> {
    try {
      await this.log.append({
        ref: usageRef(record),
        events: [{ type: 'usage.recorded.v1', data: record }],
        expected: 'any',
        commandId: eventCommandId(record),
        source: this.source,
        nowMs: Date.parse(record.startedAt) + Math.round(record.durationMs),
        correlationId: record.requestId,
        causationId: record.requestId,
        traceparent: this.traceparents.get(record.requestId),
      });
      this.inFlight -= 1;
      this.backOffMs = 0;
      this.traceparents.delete(record.requestId);
      this.onPublished(record);
      if (this.unpublished === 0) for (const resolve of this.idleWaiters.splice(0)) resolve();
    } catch (error) {
      this.inFlight -= 1;
      this.queue.push(record);
      this.pause(error);
    }
    this.pump();
  }

  private pause(error: unknown): void {
    if (this.timer !== undefined || this.isStopped) return;
    this.backOffMs = Math.min(Math.max(this.backOffMs * 2, BACK_OFF_MS_MIN), BACK_OFF_MS_MAX);
    this.logger.warn({ err: error, unpublished: this.unpublished, retryInMs: this.backOffMs }, 'usage waits for the event log');
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.pump();
    }, this.backOffMs);
    this.timer.unref();
  }
}

/** A request that is run again after a crash may end in another way; that is another event, and sinks decide which counts. */
function eventCommandId({ requestId, status }: UsageRecordedV1): string {
  return status === 'completed' ? requestId : `${requestId}_${status}`;
}
