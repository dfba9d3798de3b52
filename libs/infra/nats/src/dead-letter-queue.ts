import { headers } from '@nats-io/transport-node';
import { BrokerError, brokerCodes, brokerRequest, textOf } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { z } from 'zod';

export const DEAD_LETTER_STREAM = 'DLQ';

/** How the consumer reads: `ordered` readers skipped the event and must be rebuilt, `durable` ones can take it again. */
export const deadLetterBody = z.object({
  stream: z.string(),
  sequence: z.int().positive(),
  subject: z.string(),
  consumer: z.string(),
  mode: z.enum(['ordered', 'durable']),
  reason: z.string(),
  deliveries: z.int().nonnegative(),
  deadAt: z.iso.datetime(),
  /** The stored body, base64, cut at {@link COPY_BYTES_MAX}; the original stays in its stream. */
  body: z.string(),
});
export type DeadLetterBody = z.infer<typeof deadLetterBody>;

const REASON_CHARACTERS_MAX = 2_000;
const COPY_BYTES_MAX = 64 * 1_024;
const PUBLISH_TIMEOUT_MS = 2_000;

export interface DeadMessage {
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly deliveries: number;
}

/**
 * Files one message that a consumer cannot take. One letter per message and consumer is kept, however often it is met.
 * Rejects when the broker did not take the letter: the message must then not be given up.
 */
export async function fileDeadLetter(link: NatsLink, message: DeadMessage, consumer: string, mode: DeadLetterBody['mode'], reason: string): Promise<void> {
  const body: DeadLetterBody = {
    stream: message.stream,
    sequence: message.sequence,
    subject: message.subject,
    consumer,
    mode,
    reason: reason.slice(0, REASON_CHARACTERS_MAX),
    deliveries: message.deliveries,
    deadAt: new Date().toISOString(),
    body: Buffer.from(message.data.subarray(0, COPY_BYTES_MAX)).toString('base64'),
  };
  const extra = headers();
  extra.set('Nats-Msg-Id', `dlq:${message.stream}:${message.sequence}:${consumer}`);
  extra.set('Nats-Expected-Last-Subject-Sequence', '0');
  const subject = `dlq.${message.stream}.${consumer.replaceAll('.', '_')}.${message.sequence}`;
  const reply = await link.connection.request(subject, JSON.stringify(body), { headers: extra, timeout: PUBLISH_TIMEOUT_MS });
  const ack = JSON.parse(textOf(reply.data)) as { error?: { code: number; err_code?: number; description: string } };
  if (ack.error === undefined || ack.error.err_code === brokerCodes.wrongLastSequence) return;
  throw new BrokerError(ack.error.code, ack.error.err_code ?? 0, ack.error.description);
}

/** Takes one letter out of the queue; the original event is not touched. */
export async function removeDeadLetter(link: NatsLink, id: number): Promise<boolean> {
  try {
    await brokerRequest(link.connection, `$JS.API.STREAM.MSG.DELETE.${DEAD_LETTER_STREAM}`, { seq: id, no_erase: true });
    return true;
  } catch (error) {
    if (error instanceof BrokerError && (error.errorCode === brokerCodes.messageGone || error.errorCode === brokerCodes.messageNotFound)) return false;
    throw error;
  }
}
