import { subjectOf } from '@penstock/contract-events';
import type { RecordedEvent } from '@penstock/kernel';
import { RequestError } from '@nats-io/transport-node';
import { textOf } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';
import { DEAD_LETTER_STREAM, deadLetterBody, fileDeadLetter, removeDeadLetter, type DeadLetterBody } from './dead-letter-queue.js';
import { directGetPage, leaderGet } from './direct-get.js';
import { decodeStored } from './event-codec.js';
import { redriveReply, redriveSubject } from './redrive.js';

/** A message that a consumer could not take. */
export interface DeadLetter extends Omit<DeadLetterBody, 'body'> {
  /** Names the letter in `redrive` and `discard`. */
  readonly id: number;
}

export type RedriveOutcome =
  /** The consumer took the event; the letter is gone. */
  | { readonly kind: 'done' }
  /** The consumer failed again; the letter stays. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The event can be read now, but its reader applies in order and has passed it: rebuild that projection, then discard. */
  | { readonly kind: 'rebuild-needed'; readonly consumer: string }
  | { readonly kind: 'not-found' };

const LIST_MAX = 1_000;
const REDRIVE_TIMEOUT_MS = 30_000;

/** What operators do with events that could not be processed. */
export class DeadLetters {
  constructor(private readonly link: NatsLink) {}

  /** Oldest first, from letter `fromId`, at most {@link LIST_MAX}. */
  async list(options: { readonly consumer?: string | undefined; readonly fromId?: number | undefined; readonly limit?: number | undefined } = {}): Promise<readonly DeadLetter[]> {
    const batch = Math.min(options.limit ?? 100, LIST_MAX);
    const subject = options.consumer === undefined ? 'dlq.>' : `dlq.*.${options.consumer.replaceAll('.', '_')}.*`;
    const page = await directGetPage(this.link.connection, DEAD_LETTER_STREAM, { seq: options.fromId ?? 1, batch, next_by_subj: subject });
    return page.messages.map(({ sequence, data }) => readLetter(sequence, data));
  }

  /** Files an event that a projection read well and could not apply. Rejects when the broker did not take the letter. */
  file(event: RecordedEvent, consumer: string, reason: string): Promise<void> {
    const data = Buffer.from(JSON.stringify(event.data));
    return fileDeadLetter(this.link, { stream: event.stream, sequence: event.sequence, subject: subjectOf(event.ref), data, deliveries: 1 }, consumer, 'ordered', reason);
  }

  /** Hands the stored event to its consumer once more, and removes the letter when that succeeded. */
  async redrive(id: number): Promise<RedriveOutcome> {
    const stored = await leaderGet(this.link.connection, DEAD_LETTER_STREAM, { seq: id });
    if (stored === undefined) return { kind: 'not-found' };
    const letter = readLetter(id, stored.data);
    const outcome = letter.mode === 'ordered' ? await this.checkReadable(letter) : await this.ask(letter);
    if (outcome.kind === 'done') await removeDeadLetter(this.link, id);
    return outcome;
  }

  /** Forgets the letter; true when there was one. The event stays in its stream. */
  discard(id: number): Promise<boolean> {
    return removeDeadLetter(this.link, id);
  }

  private async ask(letter: DeadLetter): Promise<RedriveOutcome> {
    try {
      const reply = await this.link.connection.request(redriveSubject(letter.consumer), JSON.stringify({ sequence: letter.sequence }), { timeout: REDRIVE_TIMEOUT_MS });
      return redriveReply.parse(JSON.parse(textOf(reply.data)));
    } catch (error) {
      if (error instanceof RequestError && error.isNoResponders()) {
        return { kind: 'failed', reason: `nobody consumes ${letter.consumer} now; start its service, then try again` };
      }
      throw error;
    }
  }

  private async checkReadable(letter: DeadLetter): Promise<RedriveOutcome> {
    const event = await leaderGet(this.link.connection, letter.stream, { seq: letter.sequence });
    if (event === undefined) return { kind: 'failed', reason: `event ${letter.sequence} is no longer in ${letter.stream}` };
    const decoded = decodeStored(event);
    return decoded.kind === 'poison' ? { kind: 'failed', reason: decoded.reason } : { kind: 'rebuild-needed', consumer: letter.consumer };
  }
}

function readLetter(id: number, data: Uint8Array): DeadLetter {
  const { body: _copy, ...letter } = deadLetterBody.parse(JSON.parse(textOf(data)));
  return { id, ...letter };
}
