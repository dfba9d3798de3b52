import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { NANOS_PER_MS } from './broker-api.js';
import { inboxOf } from './inbox.js';

/** A message that a consumer delivered. Reading the subject or the body costs only when it is asked for. */
export interface PulledMessage {
  readonly raw: Msg;
  readonly sequence: number;
  /** Position in what this consumer delivered, from 1, counting redeliveries. */
  readonly consumerSequence: number;
  /** 1 on the first delivery. */
  readonly deliveries: number;
  /** What the consumer has still to deliver. */
  readonly pending: number;
}

export interface PullSessionOptions {
  readonly stream: string;
  readonly consumer: string;
  /** Messages that may be requested or delivered and not yet released. */
  readonly capacity: number;
  readonly onMessage: (message: PulledMessage) => void;
  /** A message that came after `stop`: hand it back where that matters. */
  readonly onLate?: ((message: PulledMessage) => void) | undefined;
  /** Called once: the consumer is gone, or silent. Start a new session. */
  readonly onBroken: (reason: string) => void;
}

const PULL_EXPIRES_MS = 30_000;
const HEARTBEAT_MS = 5_000;
const WATCH_INTERVAL_MS = 1_000;
/** Checks without a word from the server: two missed heartbeats and some slack. */
const SILENT_CHECKS_MAX = 12;

/**
 * Pulls from one consumer with a credit: no more than `capacity` messages are ever requested and not released, so a slow
 * reader holds the broker back instead of filling memory (the library's `consume` refills on arrival).
 */
export class PullSession {
  private readonly inbox: string;
  private subscription: Subscription | undefined;
  private watch: NodeJS.Timeout | undefined;
  private outstanding = 0;
  private free: number;
  private silentChecks = 0;
  private ended = false;

  constructor(private readonly connection: NatsConnection, private readonly options: PullSessionOptions) {
    this.inbox = inboxOf(connection);
    this.free = options.capacity;
  }

  start(): void {
    this.subscription = this.connection.subscribe(this.inbox, {
      callback: (error, message) => (error === null ? this.receive(message) : this.breakOff(error.message)),
    });
    this.watch = setInterval(() => this.checkSilence(), WATCH_INTERVAL_MS);
    this.request();
  }

  /** Gives back the credit of messages that were dealt with. */
  release(count: number): void {
    this.free += count;
    if (this.free * 2 >= this.options.capacity) this.request();
  }

  stop(): void {
    this.ended = true;
    clearInterval(this.watch);
    // Drains: what the server sent before it learns of the end still arrives.
    if (this.subscription !== undefined && !this.subscription.isClosed() && !this.subscription.isDraining()) this.subscription.drain().catch(() => undefined);
  }

  private request(): void {
    if (this.ended || this.free === 0) return;
    const pull = { batch: this.free, expires: PULL_EXPIRES_MS * NANOS_PER_MS, idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS };
    if (this.outstanding === 0) this.silentChecks = 0;
    this.outstanding += this.free;
    this.free = 0;
    this.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${this.options.stream}.${this.options.consumer}`, JSON.stringify(pull), { reply: this.inbox });
  }

  private receive(message: Msg): void {
    this.silentChecks = 0;
    const position = readDelivery(message.reply);
    const delivered = position === undefined ? undefined : { raw: message, deliveries: position.deliveries, sequence: position.sequence, consumerSequence: position.consumerSequence, pending: position.pending };
    if (this.ended) {
      if (delivered !== undefined) this.options.onLate?.(delivered);
      return;
    }
    if (delivered === undefined) return this.receiveStatus(message);
    this.outstanding -= 1;
    this.options.onMessage(delivered);
  }

  private receiveStatus(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) return;
    if (code !== 404 && code !== 408) return this.breakOff(`${code} ${message.headers?.description ?? ''}`.trim());
    // The pull ran out of time; what it did not deliver is free again.
    const unused = Number(message.headers?.get('Nats-Pending-Messages') ?? 0);
    this.outstanding = Math.max(0, this.outstanding - unused);
    this.free += unused;
    this.request();
  }

  private checkSilence(): void {
    if (this.outstanding === 0) return;
    this.silentChecks += 1;
    if (this.silentChecks > SILENT_CHECKS_MAX) this.breakOff('heartbeats missed');
  }

  private breakOff(reason: string): void {
    if (this.ended) return;
    this.stop();
    this.options.onBroken(reason);
  }
}

const V1_DOTS = 8;
const DOT = 46;
const ZERO = 48;

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<time>.<pending>`, or v2 with domain and account before
 * and a token behind. Scanned by hand, without a string per field: this runs for every event of a rebuild.
 */
export function readDelivery(reply: string | undefined): Omit<PulledMessage, 'raw'> | undefined {
  if (reply === undefined || !reply.startsWith('$JS.ACK.')) return undefined;
  let dots = 0;
  for (let index = 0; index < reply.length; index += 1) if (reply.charCodeAt(index) === DOT) dots += 1;
  // The names come before, so that a number is told by how many dots precede it.
  let before = dots === V1_DOTS ? 0 : -2;
  let [deliveries, sequence, consumerSequence, pending] = [0, 0, 0, 0];
  for (let index = 0; index < reply.length; index += 1) {
    const code = reply.charCodeAt(index);
    if (code === DOT) before += 1;
    else if (before === 4) deliveries = deliveries * 10 + code - ZERO;
    else if (before === 5) sequence = sequence * 10 + code - ZERO;
    else if (before === 6) consumerSequence = consumerSequence * 10 + code - ZERO;
    else if (before === 8) pending = pending * 10 + code - ZERO;
  }
  return { deliveries, sequence, consumerSequence, pending };
}
