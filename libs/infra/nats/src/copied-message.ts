import { MsgImpl } from '@nats-io/nats-core/internal';
import type { Msg, MsgHdrs } from '@nats-io/transport-node';

/** The broker marks what a direct get answers with the stream it comes from. */
const ORIGIN_HEADER = 'Nats-Stream';
const ORIGIN_LINE = `\r\n${ORIGIN_HEADER}:`;

export const COPY_REASON = 'the event was copied here out of the broker and not appended by a service';

/**
 * True for a stored message that is the answer to a direct get: whoever may read one stream can name any subject for the answer, and the
 * broker stores it there unasked. Such a message was never appended by who may append, so it is no event.
 */
export function isCopy(message: Msg): boolean {
  if (!(message instanceof MsgImpl)) return message.headers?.has(ORIGIN_HEADER) === true;
  // The raw bytes are scanned, since a rebuild looks at every event and parsing the headers costs more than all the rest.
  const headerBytes = message._msg.hdr;
  if (headerBytes <= 0) return false;
  const bytes = message._rdata;
  return Buffer.from(bytes.buffer, bytes.byteOffset, headerBytes).includes(ORIGIN_LINE, 0, 'latin1');
}

/** The same for what a direct get answers, which carries the mark once by itself. */
export function isCopyInAnswer(headers: MsgHdrs | undefined): boolean {
  return (headers?.values(ORIGIN_HEADER).length ?? 0) > 1;
}

/** The same for headers as the leader gives them, raw. */
export function isCopyInRaw(headers: string): boolean {
  return /^Nats-Stream:/im.test(headers);
}
