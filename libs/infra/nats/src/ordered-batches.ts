import type { Logger } from '@penstock/kernel';
import { nuid } from '@nats-io/transport-node';
import { backoffMs, brokerRequest, NANOS_PER_MS, pause } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { PullSession, type PulledMessage } from './pull-session.js';

export interface OrderedOptions {
  readonly from: number;
  /** Last sequence wanted; undefined goes on for ever. */
  readonly through?: number | undefined;
  readonly batchSize: number;
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

/** Messages that may lie in memory, read ahead. */
const READ_AHEAD_BATCHES = 4;
/** The server removes a consumer that nobody asked for this long. */
const CONSUMER_IDLE_MS = 30_000;
const DELETE_TIMEOUT_MS = 1_000;

interface CreatedConsumer {
  readonly name: string;
  readonly num_pending: number;
}

/**
 * Every message of a stream in order, each exactly once, over restarts of the server: a gap, a silence or a lost consumer
 * makes a new consumer from the last position. Ends at `through`, or when `signal` aborts.
 */
export async function* orderedBatches(link: NatsLink, stream: string, options: OrderedOptions): AsyncGenerator<readonly PulledMessage[]> {
  const { signal, logger, through } = options;
  let next = options.from;
  for (let failures = 0; !signal.aborted; ) {
    try {
      for await (const batch of oneConsumer(link, stream, next, options)) {
        failures = 0;
        yield batch;
        next = (batch.at(-1)?.sequence ?? next - 1) + 1;
      }
      return;
    } catch (error) {
      if (through !== undefined && next > through) return;
      failures += 1;
      logger.warn({ stream, next, reason: error instanceof Error ? error.message : String(error) }, 'reading the event log again from the last position');
      await pause(backoffMs(failures), signal);
    }
  }
}

async function* oneConsumer(link: NatsLink, stream: string, from: number, options: OrderedOptions): AsyncGenerator<readonly PulledMessage[]> {
  const consumer = await createConsumer(link, stream, from);
  const queue = new MessageQueue(from);
  const session = new PullSession(link.connection, {
    stream,
    consumer: consumer.name,
    capacity: options.batchSize * READ_AHEAD_BATCHES,
    onMessage: (message) => queue.push(message),
    onBroken: (reason) => queue.fail(reason),
  });
  const stopListening = link.onReconnect(() => queue.fail('reconnected'));
  const onAbort = (): void => queue.end();
  options.signal.addEventListener('abort', onAbort, { once: true });
  try {
    if (options.signal.aborted || (options.through !== undefined && consumer.num_pending === 0)) return;
    session.start();
    yield* drain(queue, session, options);
  } finally {
    session.stop();
    stopListening();
    options.signal.removeEventListener('abort', onAbort);
    // An ephemeral that stays behind costs the server until its idle time is over; that is also the fallback.
    void brokerRequest(link.connection, `$JS.API.CONSUMER.DELETE.${stream}.${consumer.name}`, undefined, DELETE_TIMEOUT_MS).catch(() => undefined);
  }
}

async function* drain(queue: MessageQueue, session: PullSession, options: OrderedOptions): AsyncGenerator<readonly PulledMessage[]> {
  const { through } = options;
  for (;;) {
    const taken = await queue.take(options.batchSize);
    if (taken === undefined) return;
    const last = taken.at(-1);
    const isDone = through !== undefined && last !== undefined && (last.sequence >= through || last.pending === 0);
    const wanted = through !== undefined && last !== undefined && last.sequence > through ? taken.filter((message) => message.sequence <= through) : taken;
    if (wanted.length > 0) yield wanted;
    if (isDone) return;
    session.release(taken.length);
  }
}

async function createConsumer(link: NatsLink, stream: string, from: number): Promise<CreatedConsumer> {
  const name = `tail_${nuid.next()}`;
  const config = {
    name,
    ack_policy: 'none',
    deliver_policy: 'by_start_sequence',
    opt_start_seq: Math.max(1, from),
    max_deliver: 1,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: CONSUMER_IDLE_MS * NANOS_PER_MS,
  };
  return brokerRequest<CreatedConsumer>(link.connection, `$JS.API.CONSUMER.CREATE.${stream}.${name}`, { stream_name: stream, config });
}

/** Holds what was delivered and not yet taken. Its size is bounded by the session's credit. */
class MessageQueue {
  private messages: PulledMessage[] = [];
  private failure: string | undefined;
  private isEnded = false;
  private lastConsumerSequence = 0;
  private wake: (() => void) | undefined;

  constructor(private readonly from: number) {}

  push(message: PulledMessage): void {
    if (message.consumerSequence !== this.lastConsumerSequence + 1) return this.fail('a delivery was lost');
    this.lastConsumerSequence = message.consumerSequence;
    // A start beyond the end of the stream is moved to its end by the server.
    if (message.sequence >= this.from) this.messages.push(message);
    this.wake?.();
  }

  fail(reason: string): void {
    this.failure ??= reason;
    this.wake?.();
  }

  end(): void {
    this.isEnded = true;
    this.wake?.();
  }

  /** Waits for messages; undefined at the end. Rejects once the consumer is lost and what it delivered is taken. */
  async take(limit: number): Promise<readonly PulledMessage[] | undefined> {
    for (;;) {
      if (this.isEnded) return undefined;
      if (this.messages.length > 0) return this.messages.length <= limit ? this.takeAll() : this.messages.splice(0, limit);
      if (this.failure !== undefined) throw new Error(this.failure);
      await new Promise<void>((resolve) => (this.wake = resolve));
      this.wake = undefined;
    }
  }

  private takeAll(): readonly PulledMessage[] {
    const taken = this.messages;
    this.messages = [];
    return taken;
  }
}
