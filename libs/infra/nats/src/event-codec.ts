import { contractOf, parseStoredEvent, refOf, streamOf, subjectOf } from '@penstock/contract-events';
import { APPEND_EVENTS_MAX, assert, isId, isoTime, type AggregateRef, type AppendRequest, type RecordedEvent } from '@penstock/kernel';
import type { Msg } from '@nats-io/transport-node';
import { textOf } from './broker-api.js';
import { COPY_REASON, isCopy } from './copied-message.js';
import type { StoredMessage } from './direct-get.js';
import { WrittenHeaders } from './written-headers.js';

/** An event as it goes to the broker. */
export interface EncodedEvent {
  /** CloudEvents id. */
  readonly id: string;
  /** What the broker recognises a retry by: the id within its aggregate, since one command may write to several. */
  readonly messageId: string;
  readonly body: string;
  /** Of the body in UTF-8. */
  readonly bodyBytes: number;
  readonly traceparent: string | undefined;
  readonly type: string;
  readonly time: string;
  readonly correlationId: string;
  readonly causationId: string;
}

/** A larger event carries something that belongs into the object store. The broker's own limit is 1 MiB with headers. */
export const EVENT_BYTES_MAX = 512 * 1_024;

/** Checks every event against its contract and encodes it. Throws `InvariantError`: an invalid event is a bug of its writer. */
export function encodeEvents(request: AppendRequest, traceparent: string | undefined): readonly EncodedEvent[] {
  const { ref, events } = request;
  assert(events.length > 0 && events.length <= APPEND_EVENTS_MAX, `an append holds 1 to ${APPEND_EVENTS_MAX} events, not ${events.length}`);
  assert(isId(ref.aggregate) && isId(ref.id), `${ref.aggregate} ${ref.id} cannot be a subject`);
  const prefix = messageIdPrefix(request);
  const subject = subjectOf(ref);
  const requestTime = isoTime(request.nowMs);
  return events.map((event, index) => {
    const { origin } = event;
    const id = origin === undefined ? `${request.commandId}.${index}` : `${origin.commandId}.0`;
    const messageId = origin === undefined ? `${prefix}${index}` : `${subject}:${headerValue(origin.commandId)}.0`;
    const time = origin === undefined ? requestTime : isoTime(origin.nowMs);
    const data = event.json ?? JSON.stringify(checkedData(event.type, event.data, ref));
    const { source } = request;
    const { correlationId, causationId } = origin ?? request;
    const trace = origin === undefined ? traceparent : origin.traceparent;
    // The body repeats the envelope, so that an archive of bodies needs no headers, nor does a reader.
    const envelope = JSON.stringify({ id, type: event.type, source, time, correlationId, causationId, traceparent: trace });
    const body = `${envelope.slice(0, -1)},"data":${data}}`;
    const bodyBytes = Buffer.byteLength(body);
    assert(bodyBytes <= EVENT_BYTES_MAX, `${event.type} has ${bodyBytes} bytes; an event holds at most ${EVENT_BYTES_MAX}`);
    return { id, messageId, body, bodyBytes, traceparent: trace, type: event.type, time, correlationId, causationId };
  });
}

/** What the broker's message ids of one command on one aggregate begin with; the event's index follows. */
export function messageIdPrefix(request: AppendRequest): string {
  return `${subjectOf(request.ref)}:${headerValue(request.commandId)}.`;
}

function checkedData(type: string, data: unknown, ref: AggregateRef): unknown {
  const contract = contractOf(type);
  assert(contract !== undefined, `no contract for event type ${type}`);
  assert(contract.context === ref.context, `${type} belongs to context ${contract.context}, not ${ref.context}`);
  const parsed = contract.schema.safeParse(data);
  const issue = parsed.error?.issues[0];
  assert(parsed.success, `${type} does not match its contract at ${issue?.path.join('.') || 'the root'}: ${issue?.message ?? ''}`);
  return parsed.data;
}

/** CloudEvents 1.0, binary mode of the NATS binding. The names and values of `more` are ours: they hold no line break. */
export function eventHeaders(request: AppendRequest, encoded: EncodedEvent, more: Readonly<Record<string, string>>): WrittenHeaders {
  let lines = `Nats-Msg-Id: ${encoded.messageId}\r\nce-specversion: 1.0\r\nce-id: ${headerValue(encoded.id)}\r\nce-type: ${encoded.type}\r\nce-source: ${headerValue(request.source)}\r\n`
    + `ce-time: ${encoded.time}\r\nce-subject: ${request.ref.aggregate}/${request.ref.id}\r\nce-datacontenttype: application/json\r\n`
    + `ce-correlationid: ${headerValue(encoded.correlationId)}\r\nce-causationid: ${headerValue(encoded.causationId)}\r\n`;
  for (const name in more) lines += `${name}: ${more[name] ?? ''}\r\n`;
  if (encoded.traceparent !== undefined) lines += `traceparent: ${headerValue(encoded.traceparent)}\r\n`;
  return new WrittenHeaders(lines);
}

const NOT_PLAIN = /[^\x21-\x24\x26-\x7e]/;

/** Percent-encodes what may not stand in a header, line breaks above all: ids can come from outside. */
export function headerValue(text: string): string {
  return NOT_PLAIN.test(text) ? encodeURIComponent(text) : text;
}

/** Subjects repeat within a stream far more often than they are new. Emptied when full, since any entry is cheap to make again. */
const refs = new Map<string, AggregateRef>();
const REFS_MAX = 10_000;

function knownRef(subject: string): AggregateRef | undefined {
  const known = refs.get(subject);
  if (known !== undefined) return known;
  const ref = refOf(subject);
  if (ref === undefined) return undefined;
  if (refs.size >= REFS_MAX) refs.clear();
  refs.set(subject, ref);
  return ref;
}

export type DecodedEvent =
  | { readonly kind: 'event'; readonly event: RecordedEvent }
  | { readonly kind: 'poison'; readonly reason: string };

/** Reads what the leader gave. */
export function decodeStored(message: Pick<StoredMessage, 'subject' | 'sequence' | 'data' | 'isCopy'>): DecodedEvent {
  return message.isCopy ? { kind: 'poison', reason: COPY_REASON } : decodeEvent(message.subject, message.sequence, message.data);
}

/** Reads what a consumer delivered. */
export function decodeMessage({ raw, sequence }: { readonly raw: Msg; readonly sequence: number }): DecodedEvent {
  return isCopy(raw) ? { kind: 'poison', reason: COPY_REASON } : decodeEvent(raw.subject, sequence, raw.data);
}

/** Reads one stored message: JSON, envelope, contract, upcast. Never throws. */
function decodeEvent(subject: string, sequence: number, bytes: Uint8Array): DecodedEvent {
  const ref = knownRef(subject);
  if (ref === undefined) return { kind: 'poison', reason: `${subject} is not the subject of an aggregate` };
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(textOf(bytes)) as Record<string, unknown>;
  } catch {
    return { kind: 'poison', reason: 'the body is not JSON' };
  }
  if (typeof body !== 'object' || body === null) return { kind: 'poison', reason: 'the body is not an object' };
  const { id, type, source, time, correlationId, causationId, traceparent } = body;
  if (typeof id !== 'string' || typeof type !== 'string' || typeof source !== 'string' || typeof time !== 'string' || typeof correlationId !== 'string' || typeof causationId !== 'string') {
    return { kind: 'poison', reason: 'the envelope lacks one of id, type, source, time, correlationId, causationId' };
  }
  const parsed = parseStoredEvent(type, body['data']);
  if (parsed.kind === 'poison') return parsed;
  const event: RecordedEvent = {
    id, type: parsed.type, data: parsed.data, source, time, correlationId, causationId,
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    ref, stream: streamOf(ref.context), sequence,
  };
  return { kind: 'event', event };
}
