import type { StreamName } from '@penstock/contract-events';
import type { AggregateRef, AppendRequest, AppendResult, BatchHandler, EventLog, ReadOptions, RecordedEvent, StreamBounds, Subscription } from '@penstock/kernel';
import { MemoryEventLog } from '@penstock/testing-kit';

const STREAMS: readonly StreamName[] = ['EV_FLEET', 'EV_REGISTRY', 'EV_SCALING'];

/** The one log of a simulated installation; every process reaches it over a link of its own. */
export class SharedLog implements EventLog {
  readonly memory = new MemoryEventLog();
  private readonly listeners = new Set<() => void>();
  private readonly seen = new Map<StreamName, number>();

  /** `onEvent` is told of every event once, in the order in which they were stored. */
  constructor(private readonly onEvent: (event: RecordedEvent) => void) {}

  async append(request: AppendRequest): Promise<AppendResult> {
    const result = await this.memory.append(request);
    for (const stream of STREAMS) this.tell(stream);
    for (const listener of this.listeners) listener();
    return result;
  }

  load(ref: AggregateRef, afterSequence?: number): Promise<readonly RecordedEvent[]> {
    return this.memory.load(ref, afterSequence);
  }

  read(stream: StreamName, options?: ReadOptions): AsyncIterable<readonly RecordedEvent[]> {
    return this.memory.read(stream, options);
  }

  tail(stream: StreamName, fromSequence: number, onBatch: BatchHandler): Promise<Subscription> {
    return this.memory.tail(stream, fromSequence, onBatch);
  }

  bounds(stream: StreamName): Promise<StreamBounds> {
    return this.memory.bounds(stream);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(stream: StreamName): void {
    const events = this.memory.all(stream);
    const from = this.seen.get(stream) ?? 0;
    this.seen.set(stream, events.length);
    for (const event of events.slice(from)) this.onEvent(event);
  }
}
