import { streamOf, subjectOf, type StreamName } from '@penstock/contract-events';
import {
  EventLogFullError,
  EventLogUnavailableError,
  silentLogger,
  UnreadableEventError,
  type AggregateRef,
  type AppendRequest,
  type AppendResult,
  type BatchHandler,
  type EventLog,
  type Logger,
  type ReadOptions,
  type RecordedEvent,
  type StreamBounds,
  type Subscription,
} from '@penstock/kernel';
import { BrokerError, backoffMs, brokerRequest, isTransient, pause } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { fileDeadLetter } from './dead-letter-queue.js';
import { leaderGet } from './direct-get.js';
import { decodeMessage, decodeStored, encodeEvents, messageIdPrefix } from './event-codec.js';
import { LastWritten } from './last-written.js';
import { loadMessages } from './load-messages.js';
import { orderedBatches, type OrderedOptions } from './ordered-batches.js';
import { publishEvents, type PublishOutcome } from './publish-events.js';
import type { PulledMessage } from './pull-session.js';
import { activeTraceparent } from './tracing.js';

export interface NatsEventLogOptions {
  /** Names the reader in dead letters, as in `registry`. */
  readonly consumerName: string;
  readonly logger?: Logger | undefined;
  /** How long an operation goes on trying while the broker restarts or elects a leader. */
  readonly totalTimeoutMs?: number | undefined;
}

/** A failover of a cluster takes about six seconds. */
export const OPERATION_TOTAL_MS = 15_000;
const BATCH_SIZE = 1_000;

/** The event log on JetStream. */
export class NatsEventLog implements EventLog {
  private readonly logger: Logger;
  private readonly totalMs: number;
  private readonly lastWritten = new LastWritten();

  constructor(private readonly link: NatsLink, private readonly options: NatsEventLogOptions) {
    this.logger = options.logger ?? silentLogger;
    this.totalMs = options.totalTimeoutMs ?? OPERATION_TOTAL_MS;
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    const events = encodeEvents(request, request.traceparent ?? activeTraceparent());
    const result = await this.untilAnswered(`append to ${subjectOf(request.ref)}`, async () => {
      const outcome = await publishEvents(this.link.connection, request, events);
      return this.settle(request, outcome);
    });
    const last = result.kind === 'appended' ? result.lastSequence : result.actual;
    if (last !== undefined) this.lastWritten.remember(subjectOf(request.ref), last);
    return result;
  }

  async load(ref: AggregateRef, afterSequence = 0): Promise<readonly RecordedEvent[]> {
    const subject = subjectOf(ref);
    const stream = streamOf(ref.context);
    const messages = await this.untilAnswered(`load ${subject}`, () => loadMessages(this.link.connection, stream, subject, afterSequence, this.lastWritten.sequenceOf(subject)));
    return messages.map(({ sequence, data, isCopy }) => {
      const decoded = decodeStored({ subject, sequence, data, isCopy });
      if (decoded.kind === 'poison') throw new UnreadableEventError(stream, sequence, decoded.reason);
      return decoded.event;
    });
  }

  async *read(stream: StreamName, options: ReadOptions = {}): AsyncIterable<readonly RecordedEvent[]> {
    const { firstSequence, lastSequence } = await this.bounds(stream);
    const from = Math.max(options.fromSequence ?? 1, firstSequence);
    const through = Math.min(options.toSequence ?? lastSequence, lastSequence);
    if (from > through) return;
    const abort = new AbortController();
    try {
      for await (const messages of this.messages(stream, { from, through, signal: abort.signal, batchSize: options.batchSize ?? BATCH_SIZE })) {
        const events = await this.readable(stream, messages, abort.signal);
        if (events.length > 0) yield events;
      }
    } finally {
      abort.abort();
    }
  }

  /** Do not await `close` of the subscription inside its own handler: it waits for the handler. */
  async tail(stream: StreamName, fromSequence: number, onBatch: BatchHandler): Promise<Subscription> {
    await this.bounds(stream);
    const abort = new AbortController();
    const running = this.follow(stream, fromSequence, onBatch, abort.signal);
    return {
      close: async () => {
        abort.abort();
        await running;
      },
    };
  }

  async bounds(stream: StreamName): Promise<StreamBounds> {
    const { state } = await this.untilAnswered(`bounds of ${stream}`, () =>
      brokerRequest<{ state: { first_seq: number; last_seq: number } }>(this.link.connection, `$JS.API.STREAM.INFO.${stream}`, undefined));
    return { firstSequence: Math.max(1, state.first_seq), lastSequence: state.last_seq };
  }

  private async follow(stream: StreamName, from: number, onBatch: BatchHandler, signal: AbortSignal): Promise<void> {
    for await (const messages of this.messages(stream, { from, signal, batchSize: BATCH_SIZE })) {
      const events = await this.readable(stream, messages, signal);
      const through = messages.at(-1)?.sequence ?? 0;
      for (let attempt = 0; !signal.aborted; attempt += 1) {
        try {
          await onBatch(events, through);
          break;
        } catch (error) {
          this.logger.warn({ err: error, stream, through, attempt }, 'a reader failed; it gets the same batch again');
          await pause(backoffMs(attempt), signal);
        }
      }
    }
  }

  private messages(stream: StreamName, options: Omit<OrderedOptions, 'logger'>): AsyncGenerator<readonly PulledMessage[]> {
    return orderedBatches(this.link, stream, { ...options, logger: this.logger });
  }

  /** What can be read; the rest becomes dead letters first, so that nothing is skipped without a trace. */
  private async readable(stream: StreamName, messages: readonly PulledMessage[], signal: AbortSignal): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    for (const message of messages) {
      const decoded = decodeMessage(message);
      if (decoded.kind === 'event') events.push(decoded.event);
      else await this.bury(stream, message, decoded.reason, signal);
    }
    return events;
  }

  private async bury(stream: StreamName, message: PulledMessage, reason: string, signal: AbortSignal): Promise<void> {
    const dead = { stream, sequence: message.sequence, subject: message.raw.subject, data: message.raw.data, deliveries: 1 };
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        await fileDeadLetter(this.link, dead, this.options.consumerName, 'ordered', reason);
        this.logger.error({ stream, sequence: message.sequence, reason }, 'an event cannot be read; it is in the dead letters and was skipped');
        return;
      } catch (error) {
        this.logger.warn({ err: error, stream, sequence: message.sequence }, 'cannot file a dead letter; trying again');
        await pause(backoffMs(attempt), signal);
      }
    }
  }

  /** Turns one attempt into a result; throws what makes `untilAnswered` try again. */
  private async settle(request: AppendRequest, outcome: PublishOutcome): Promise<AppendResult> {
    switch (outcome.kind) {
      case 'stored':
        return { kind: 'appended', lastSequence: outcome.sequence, duplicate: outcome.duplicate };
      case 'full':
        throw new EventLogFullError(streamOf(request.ref.context));
      case 'unclear':
        throw outcome.cause;
      case 'conflict':
        return this.settleConflict(request, outcome.actual);
      case 'batch-duplicate':
        return this.settleDuplicate(request);
    }
  }

  /**
   * A conflict may be our own event: an attempt that got no answer was stored after all (the broker checks the expected
   * sequence before it recognises the id). Looks, past the leader, whether what came after the expectation is ours.
   */
  private async settleConflict(request: AppendRequest, actual: number | undefined): Promise<AppendResult> {
    const subject = subjectOf(request.ref);
    const after = request.expected === 'any' ? 0 : request.expected;
    const newer = await loadMessages(this.link.connection, streamOf(request.ref.context), subject, after, 'leader');
    const ours = newer.findLast((message) => message.messageId.startsWith(messageIdPrefix(request)));
    if (ours !== undefined) return { kind: 'appended', lastSequence: ours.sequence, duplicate: true };
    return { kind: 'conflict', actual: newer.at(-1)?.sequence ?? actual };
  }

  /** The ids are stored, and a batch is stored whole. Its last sequence is not told; the subject's newest is at least that. */
  private async settleDuplicate(request: AppendRequest): Promise<AppendResult> {
    const newest = await leaderGet(this.link.connection, streamOf(request.ref.context), { last_by_subj: subjectOf(request.ref) });
    return { kind: 'appended', lastSequence: newest?.sequence ?? 0, duplicate: true };
  }

  /** Tries again while the broker gives no clear answer, up to the total bound. */
  private async untilAnswered<Result>(what: string, attempt: () => Promise<Result>): Promise<Result> {
    const deadline = performance.now() + this.totalMs;
    for (let failures = 0; ; failures += 1) {
      try {
        // While disconnected the client would only pile messages up in memory.
        if (this.link.state() !== 'connected') throw new Error(`NATS is ${this.link.state()}`);
        return await attempt();
      } catch (error) {
        if (error instanceof EventLogFullError) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        const isHopeless = !isTransient(error) || this.link.state() === 'closed';
        if (isHopeless || performance.now() > deadline) throw new EventLogUnavailableError(`${what}: ${reason}`, { cause: error });
        if (error instanceof BrokerError) this.logger.debug({ reason, failures }, 'the event log is not ready; trying again');
        await pause(backoffMs(failures));
      }
    }
  }
}
