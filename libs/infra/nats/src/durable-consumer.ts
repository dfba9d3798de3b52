import type { Logger } from '@penstock/kernel';
import { atMost, backoffMs, BrokerError, brokerCodes, brokerRequest, NANOS_PER_MS, pause } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { PullSession, type PulledMessage } from './pull-session.js';

const CREATE_ATTEMPTS_MAX = 20;
const HEALTHY_AFTER_MS = 30_000;
/** Several processes share one durable; each holds at most its own in-flight limit. */
const PROCESSES_MAX = 16;

export interface DurableOptions {
  readonly stream: string;
  readonly durable: string;
  readonly maxInFlight: number;
  /** The broker hands a message out again when it was not settled for this long; handlers that take longer extend it. */
  readonly ackWaitMs: number;
  readonly logger: Logger;
  /** Settles the message (ack, nak or term) before it resolves. Never rejects. */
  readonly handle: (message: PulledMessage) => Promise<void>;
}

/** Delivers from a durable consumer to a handler, with a bounded number in flight, over restarts of the server. */
export class DurableConsumer {
  private readonly abort = new AbortController();
  private readonly inFlight = new Set<Promise<void>>();
  private running: Promise<void> | undefined;

  constructor(private readonly link: NatsLink, private readonly options: DurableOptions) {}

  /** Resolves once the consumer exists. Rejects when the stream is missing. */
  async start(): Promise<void> {
    await this.create();
    this.running = this.run();
  }

  /** Stops asking for more, waits for what is in flight at most `drainTimeoutMs`, and sends the last acknowledgements. */
  async close(drainTimeoutMs: number): Promise<void> {
    this.abort.abort();
    await this.running;
    await atMost(drainTimeoutMs, Promise.allSettled(this.inFlight));
    if (this.link.state() === 'connected') await atMost(drainTimeoutMs, this.link.connection.flush());
  }

  private async run(): Promise<void> {
    const { signal } = this.abort;
    for (let failures = 0; !signal.aborted; ) {
      const startedMs = performance.now();
      const reason = await this.session();
      if (signal.aborted) return;
      failures = performance.now() - startedMs > HEALTHY_AFTER_MS ? 0 : failures + 1;
      this.options.logger.warn({ stream: this.options.stream, durable: this.options.durable, reason }, 'consuming again');
      await pause(backoffMs(failures), signal);
      if (!signal.aborted) await this.create().catch((error: unknown) => this.options.logger.warn({ err: error, durable: this.options.durable }, 'cannot reach the consumer'));
    }
  }

  /** One session; resolves with the reason of its end. */
  private session(): Promise<string> {
    const { stream, durable, maxInFlight } = this.options;
    return new Promise((resolve) => {
      const finish = (reason: string): void => {
        session.stop();
        stopListening();
        this.abort.signal.removeEventListener('abort', onAbort);
        resolve(reason);
      };
      const onAbort = (): void => finish('closed');
      const stopListening = this.link.onReconnect(() => finish('reconnected'));
      this.abort.signal.addEventListener('abort', onAbort, { once: true });
      const session = new PullSession(this.link.connection, {
        stream,
        consumer: durable,
        capacity: maxInFlight,
        onMessage: (message) => this.take(message, session),
        onLate: (message) => message.raw.respond('-NAK'),
        onBroken: finish,
      });
      session.start();
    });
  }

  private take(message: PulledMessage, session: PullSession): void {
    const extend = setInterval(() => message.raw.respond('+WPI'), this.options.ackWaitMs / 2);
    const work = this.options.handle(message).finally(() => {
      clearInterval(extend);
      this.inFlight.delete(work);
      session.release(1);
    });
    this.inFlight.add(work);
  }

  private async create(): Promise<void> {
    const { stream, durable, maxInFlight, ackWaitMs } = this.options;
    const config = {
      name: durable,
      durable_name: durable,
      ack_policy: 'explicit',
      deliver_policy: 'all',
      ack_wait: ackWaitMs * NANOS_PER_MS,
      max_ack_pending: maxInFlight * PROCESSES_MAX,
      // Giving up is our decision: the broker would only skip the message.
      max_deliver: -1,
    };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await brokerRequest(this.link.connection, `$JS.API.CONSUMER.CREATE.${stream}.${durable}`, { stream_name: stream, config, action: '' });
        return;
      } catch (error) {
        const isHopeless = error instanceof BrokerError && (error.errorCode === brokerCodes.streamNotFound || error.code < 500);
        if (isHopeless || attempt >= CREATE_ATTEMPTS_MAX || this.abort.signal.aborted) throw error;
        await pause(backoffMs(attempt), this.abort.signal);
      }
    }
  }
}
