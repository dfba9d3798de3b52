import { contractOf, parseStoredEvent, streamOf, subjectOf, type StreamName } from '@penstock/contract-events';
import {
  APPEND_EVENTS_MAX,
  assert,
  type AggregateRef,
  type AppendRequest,
  type AppendResult,
  type BatchHandler,
  type EventLog,
  type ReadOptions,
  type RecordedEvent,
  type StreamBounds,
  type Subscription,
} from '@penstock/kernel';

const BATCH_SIZE = 1_000;
const RETRY_DELAY_MS = 5;

/** The event log in memory: the same outcomes as the real one, checked by the same suite. */
export class MemoryEventLog implements EventLog {
  private readonly streams = new Map<StreamName, RecordedEvent[]>();
  private readonly tails = new Set<Tail>();
  private readonly bySubject = new Map<string, RecordedEvent[]>();

  append(request: AppendRequest): Promise<AppendResult> {
    try {
      return Promise.resolve(this.appendNow(request));
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  load(ref: AggregateRef, afterSequence = 0): Promise<readonly RecordedEvent[]> {
    return Promise.resolve(this.eventsOf(ref).filter((event) => event.sequence > afterSequence));
  }

  async *read(stream: StreamName, options: ReadOptions = {}): AsyncIterable<readonly RecordedEvent[]> {
    const all = this.all(stream);
    const through = Math.min(options.toSequence ?? all.length, all.length);
    const batchSize = options.batchSize ?? BATCH_SIZE;
    for (let next = Math.max(1, options.fromSequence ?? 1); next <= through; next += batchSize) {
      await Promise.resolve();
      yield all.slice(next - 1, Math.min(next - 1 + batchSize, through));
    }
  }

  tail(stream: StreamName, fromSequence: number, onBatch: BatchHandler): Promise<Subscription> {
    const tail = new Tail(() => this.all(stream), fromSequence, onBatch);
    this.tails.add(tail);
    tail.wake();
    return Promise.resolve({
      close: async () => {
        this.tails.delete(tail);
        await tail.stop();
      },
    });
  }

  bounds(stream: StreamName): Promise<StreamBounds> {
    return Promise.resolve({ firstSequence: 1, lastSequence: this.all(stream).length });
  }

  /** Everything that is stored, for assertions. */
  all(stream: StreamName): RecordedEvent[] {
    let events = this.streams.get(stream);
    if (events === undefined) this.streams.set(stream, (events = []));
    return events;
  }

  private eventsOf(ref: AggregateRef): RecordedEvent[] {
    const subject = subjectOf(ref);
    let events = this.bySubject.get(subject);
    if (events === undefined) this.bySubject.set(subject, (events = []));
    return events;
  }

  private appendNow(request: AppendRequest): AppendResult {
    const { ref, events, expected, commandId, source, correlationId, causationId, traceparent } = request;
    assert(events.length > 0 && events.length <= APPEND_EVENTS_MAX, `an append holds 1 to ${APPEND_EVENTS_MAX} events, not ${events.length}`);
    const lifted = events.map((event) => readable(event.type, checked(event.type, event.data, ref)));
    const history = this.eventsOf(ref);
    const ours = history.findLast((event) => event.id.startsWith(`${commandId}.`));
    if (ours !== undefined) return { kind: 'appended', lastSequence: ours.sequence, duplicate: true };
    const actual = history.at(-1)?.sequence ?? 0;
    if (expected !== 'any' && expected !== actual) return { kind: 'conflict', actual };
    const stream = streamOf(ref.context);
    const all = this.all(stream);
    const time = new Date(request.nowMs).toISOString();
    for (const [index, event] of events.entries()) {
      const { origin } = event;
      const of = origin === undefined ? { id: `${commandId}.${index}`, time, correlationId, causationId, traceparent } : { id: `${origin.commandId}.0`, time: new Date(origin.nowMs).toISOString(), correlationId: origin.correlationId, causationId: origin.causationId, traceparent: origin.traceparent };
      const recorded: RecordedEvent = { ...of, ...(lifted[index] as LiftedEvent), source, ref, stream, sequence: all.length + 1 };
      all.push(recorded);
      history.push(recorded);
    }
    for (const tail of this.tails) tail.wake();
    return { kind: 'appended', lastSequence: all.length, duplicate: false };
  }
}

function checked(type: string, data: unknown, ref: AggregateRef): unknown {
  const contract = contractOf(type);
  assert(contract !== undefined, `no contract for event type ${type}`);
  assert(contract.context === ref.context, `${type} belongs to context ${contract.context}, not ${ref.context}`);
  const parsed = contract.schema.safeParse(data);
  assert(parsed.success, `${type} does not match its contract: ${parsed.error?.issues[0]?.message ?? ''}`);
  return parsed.data;
}

interface LiftedEvent {
  readonly type: string;
  readonly data: unknown;
}

/** The real log lifts old versions when it is read; here that happens at once, which no reader can tell apart. */
function readable(type: string, data: unknown): LiftedEvent {
  const parsed = parseStoredEvent(type, data);
  assert(parsed.kind === 'parsed', `${type} cannot be read: ${parsed.kind === 'poison' ? parsed.reason : ''}`);
  return { type: parsed.type, data: parsed.data };
}

class Tail {
  private running: Promise<void> | undefined;
  private isStopped = false;

  constructor(private readonly events: () => readonly RecordedEvent[], private next: number, private readonly onBatch: BatchHandler) {}

  wake(): void {
    if (this.isStopped || this.running !== undefined) return;
    this.running = this.deliver().finally(() => {
      this.running = undefined;
      if (!this.isStopped && this.next <= this.events().length) this.wake();
    });
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
  }

  private async deliver(): Promise<void> {
    // Like the real one, it never calls the handler inside `append` or `tail`.
    await Promise.resolve();
    while (!this.isStopped && this.next <= this.events().length) {
      const batch = this.events().slice(this.next - 1, this.next - 1 + BATCH_SIZE);
      const through = batch.at(-1)?.sequence ?? 0;
      try {
        await this.onBatch(batch, through);
        this.next = through + 1;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
      }
    }
  }
}
