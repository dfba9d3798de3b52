import { silentLogger, type Logger } from '@penstock/kernel';
import { ServerNats, type CustomStrategy, type NatsContext } from '@nestjs/microservices';
import { connect, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import { atMost } from './broker-api.js';
import { connectionOptions, type NatsOptions } from './connect-nats.js';
import { inSpan, SpanKind } from './tracing.js';

export interface CommandTransportOptions extends NatsOptions {
  /** Queue group: each command reaches one process of the service. */
  readonly queue: string;
  readonly drainTimeoutMs?: number | undefined;
}

const DRAIN_TIMEOUT_MS = 10_000;
const FLUSH_TIMEOUT_MS = 1_000;

/** Nest's NATS transporter for the `@MessagePattern` handlers of one service: `app.connectMicroservice(natsCommandTransport(…))`. */
export function natsCommandTransport(options: CommandTransportOptions): CustomStrategy {
  return { strategy: new NatsCommandServer(options) };
}

/**
 * Nest's transporter with three differences: event handlers are left to JetStream, `close` waits for the commands in flight,
 * and each command continues the trace of its sender.
 */
class NatsCommandServer extends ServerNats {
  private readonly log: Logger;
  private client: NatsConnection | undefined;
  private commandSubscriptions: Subscription[] = [];
  private readonly inFlight = new Set<Promise<void>>();

  constructor(private readonly commandOptions: CommandTransportOptions) {
    super({ queue: commandOptions.queue });
    this.log = commandOptions.logger ?? silentLogger;
  }

  override async createNatsClient(): Promise<NatsConnection> {
    this.client = await connect(connectionOptions(this.commandOptions));
    return this.client;
  }

  override bindEvents(client: NatsConnection): void {
    const { queue } = this.commandOptions;
    for (const [pattern, handler] of this.messageHandlers) {
      if (handler.isEventHandler === true) continue;
      const onMessage = this.getMessageHandler(pattern) as (error: Error | null, message: Msg) => Promise<void>;
      this.commandSubscriptions.push(client.subscribe(pattern, { queue, callback: (error, message) => this.takeCommand(onMessage, error, message) }));
    }
  }

  /** A command that is sent the moment the service says it has started must find its subscription on the server. */
  override start(callback: (error?: unknown, ...optional: unknown[]) => void): void {
    super.start((error, ...optional) => {
      const flushed = this.client === undefined ? Promise.resolve() : this.client.flush();
      flushed.then(() => callback(error, ...optional), callback);
    });
  }

  override handleMessage(channel: string, message: Msg): Promise<unknown> {
    const traceparent = message.headers?.get('traceparent');
    return inSpan(`handle ${channel}`, SpanKind.CONSUMER, traceparent === '' ? undefined : traceparent, { 'messaging.system': 'nats', 'messaging.destination.name': channel }, () => super.handleMessage(channel, message));
  }

  /**
   * A stored message that JetStream was made to deliver here (a consumer's or a read's target subject is not checked by the server) is no
   * command: its answer would go nowhere, or to JetStream. Whoever asks listens on an inbox.
   */
  private takeCommand(onMessage: (error: Error | null, message: Msg) => Promise<void>, error: Error | null, message: Msg): void {
    if (error === null && message.reply?.startsWith('_INBOX.') !== true) {
      this.log.warn({ subject: message.subject }, 'dropped a message that is not a command: it names no inbox for its answer');
      return;
    }
    void onMessage(error, message);
  }

  /** A command is in flight until Nest has sent its last packet. */
  override getPublisher(message: Msg, id: string, context: NatsContext): (response: { isDisposed?: boolean }) => unknown {
    const publish = super.getPublisher(message, id, context);
    let settle: () => void = () => undefined;
    const work = new Promise<void>((resolve) => (settle = resolve)).finally(() => this.inFlight.delete(work));
    this.inFlight.add(work);
    return (response) => {
      if (response.isDisposed === true) settle();
      return publish(response) as unknown;
    };
  }

  override async close(): Promise<void> {
    for (const subscription of this.commandSubscriptions) subscription.unsubscribe();
    this.commandSubscriptions = [];
    const isDrained = await atMost(this.commandOptions.drainTimeoutMs ?? DRAIN_TIMEOUT_MS, Promise.allSettled(this.inFlight));
    if (!isDrained) this.log.warn({ commands: this.inFlight.size }, 'commands still ran at the end of the drain');
    if (this.client !== undefined && !this.client.isClosed()) await atMost(FLUSH_TIMEOUT_MS, this.client.flush());
    await super.close();
  }
}
