import { contractOf, streamOf, type StreamName } from '@penstock/contract-events';
import { silentLogger, type Logger, type RecordedEvent, type Subscription } from '@penstock/kernel';
import { BaseRpcContext, Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import { NANOS_PER_MS } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { fileDeadLetter } from './dead-letter-queue.js';
import { DurableConsumer } from './durable-consumer.js';
import { decodeMessage } from './event-codec.js';
import type { PulledMessage } from './pull-session.js';
import { serveRedrive } from './redrive.js';
import { inSpan, SpanKind } from './tracing.js';

export interface JetStreamStrategyOptions {
  readonly link: NatsLink;
  readonly stream: StreamName;
  /** Name of the durable consumer; processes that share it share the work. Letters, digits, `_` and `-`. */
  readonly durable: string;
  readonly logger?: Logger | undefined;
  /** Handles only these event types; all patterns of the application that belong to the stream when left out. */
  readonly types?: readonly string[] | undefined;
  readonly maxInFlight?: number | undefined;
  /** Deliveries after which a failing event becomes a dead letter. */
  readonly maxDeliveries?: number | undefined;
  readonly ackWaitMs?: number | undefined;
  /** Delay before the second delivery; it doubles up to a minute. */
  readonly retryDelayMs?: number | undefined;
  readonly drainTimeoutMs?: number | undefined;
}

export const IN_FLIGHT_MAX = 64;
export const DELIVERIES_MAX = 8;
const ACK_WAIT_MS = 30_000;
const RETRY_DELAY_MS = 250;
const RETRY_DELAY_MAX_MS = 60_000;
const DRAIN_TIMEOUT_MS = 10_000;

/** What a handler's `@Ctx()` is. */
export class JetStreamContext extends BaseRpcContext<[RecordedEvent, number]> {
  event(): RecordedEvent {
    return this.args[0];
  }

  /** 1 on the first delivery. */
  deliveries(): number {
    return this.args[1];
  }
}

/**
 * Nest transport for events: `@EventPattern('usage.recorded.v2')` handlers get the `RecordedEvent` as payload, at least once.
 * An event is acknowledged after its handler succeeded, delivered again with growing delays when it failed, and filed as a
 * dead letter when it cannot be read or failed too often. Events without a handler are passed over.
 */
export class JetStreamStrategy extends Server implements CustomTransportStrategy {
  override readonly transportId = Symbol('jetstream');
  private readonly log: Logger;
  private consumer: DurableConsumer | undefined;
  private redrive: Subscription | undefined;

  constructor(private readonly options: JetStreamStrategyOptions) {
    super();
    this.log = options.logger ?? silentLogger;
  }

  listen(callback: (error?: unknown) => void): void {
    this.start().then(() => callback(), callback);
  }

  async close(): Promise<void> {
    await this.redrive?.close();
    await this.consumer?.close(this.options.drainTimeoutMs ?? DRAIN_TIMEOUT_MS);
  }

  on(): void {
    throw new Error('JetStreamStrategy has no events; use the link of its connection');
  }

  unwrap<T>(): T {
    return this.options.link as T;
  }

  private async start(): Promise<void> {
    const { link, stream, durable } = this.options;
    this.consumer = new DurableConsumer(link, {
      stream,
      durable,
      logger: this.log,
      maxInFlight: this.options.maxInFlight ?? IN_FLIGHT_MAX,
      ackWaitMs: this.options.ackWaitMs ?? ACK_WAIT_MS,
      handle: (message) => this.take(message),
    });
    await this.consumer.start();
    this.redrive = serveRedrive(link, stream, durable, (event) => this.dispatch(event, 1));
  }

  private async take(message: PulledMessage): Promise<void> {
    const decoded = decodeMessage(message);
    if (decoded.kind === 'poison') return this.bury(message, decoded.reason);
    try {
      await this.dispatch(decoded.event, message.deliveries);
      message.raw.respond('+ACK');
    } catch (error) {
      const reason = error instanceof Error ? error.message : JSON.stringify(error);
      if (message.deliveries >= (this.options.maxDeliveries ?? DELIVERIES_MAX)) return this.bury(message, `${decoded.event.type} failed ${message.deliveries} times: ${reason}`);
      this.log.warn({ err: error, type: decoded.event.type, sequence: message.sequence, deliveries: message.deliveries }, 'an event handler failed; it gets the event again');
      this.again(message);
    }
  }

  private again(message: PulledMessage): void {
    const delayMs = Math.min(RETRY_DELAY_MAX_MS, (this.options.retryDelayMs ?? RETRY_DELAY_MS) * 2 ** Math.min(message.deliveries - 1, 20));
    message.raw.respond(`-NAK ${JSON.stringify({ delay: delayMs * NANOS_PER_MS })}`);
  }

  private async bury(message: PulledMessage, reason: string): Promise<void> {
    const { link, stream, durable } = this.options;
    const dead = { stream, sequence: message.sequence, subject: message.raw.subject, data: message.raw.data, deliveries: message.deliveries };
    try {
      await fileDeadLetter(link, dead, durable, 'durable', reason);
      this.log.error({ stream, durable, sequence: message.sequence, reason }, 'an event became a dead letter');
      message.raw.respond('+TERM dead letter');
    } catch (error) {
      this.log.warn({ err: error, sequence: message.sequence }, 'cannot file a dead letter; trying again');
      this.again(message);
    }
  }

  private async dispatch(event: RecordedEvent, deliveries: number): Promise<void> {
    const first = this.handlerOf(event.type);
    if (first === undefined) return;
    const attributes = { 'messaging.system': 'nats', 'messaging.destination.name': event.stream, 'messaging.message.id': event.id };
    await inSpan(`process ${event.type}`, SpanKind.CONSUMER, event.traceparent, attributes, async () => {
      const context = new JetStreamContext([event, deliveries]);
      for (let handler: MessageHandler | undefined = first; handler !== undefined; handler = handler.next as MessageHandler | undefined) {
        const result: unknown = await handler(event, context);
        // Nest turns what a handler throws into a stream that fails: only who subscribes learns of it.
        if (isObservable(result)) await lastValueFrom(result, { defaultValue: undefined });
      }
    });
  }

  private handlerOf(type: string): MessageHandler | undefined {
    const { stream, types } = this.options;
    if (types !== undefined && !types.includes(type)) return undefined;
    const contract = contractOf(type);
    if (contract === undefined || streamOf(contract.context) !== stream) return undefined;
    const handler = this.messageHandlers.get(type);
    return handler?.isEventHandler === true ? handler : undefined;
  }
}
