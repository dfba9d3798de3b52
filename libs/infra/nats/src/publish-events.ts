import { subjectOf } from '@penstock/contract-events';
import { assert, type AppendRequest } from '@penstock/kernel';
import { NatsConnectionImpl } from '@nats-io/nats-core/internal';
import { errors, nuid, type NatsConnection } from '@nats-io/transport-node';
import { BrokerError, brokerCodes, textOf } from './broker-api.js';
import { eventHeaders, type EncodedEvent } from './event-codec.js';

/** How one attempt to store ended. */
export type PublishOutcome =
  | { readonly kind: 'stored'; readonly sequence: number; readonly duplicate: boolean }
  | { readonly kind: 'conflict'; readonly actual: number | undefined }
  /** The batch was refused because at least one of its message ids is stored already. */
  | { readonly kind: 'batch-duplicate' }
  | { readonly kind: 'full' }
  /** No answer, or one that says "not now": the events may be stored or not. */
  | { readonly kind: 'unclear'; readonly cause: unknown };

export const PUBLISH_TIMEOUT_MS = 2_000;

/** Makes one attempt: a single message, or an atomic batch. */
export async function publishEvents(connection: NatsConnection, request: AppendRequest, events: readonly EncodedEvent[]): Promise<PublishOutcome> {
  try {
    return events.length === 1 ? await publishOne(connection, request, events) : await publishBatch(connection, request, events);
  } catch (error) {
    return outcomeOf(error);
  }
}

async function publishOne(connection: NatsConnection, request: AppendRequest, events: readonly EncodedEvent[]): Promise<PublishOutcome> {
  const [event] = events;
  if (event === undefined) throw new TypeError('nothing to publish');
  const headers = eventHeaders(request, event, expectation(request));
  const reply = await connection.request(subjectOf(request.ref), event.body, { headers, timeout: PUBLISH_TIMEOUT_MS });
  return readAck(reply.data);
}

/**
 * An atomic batch over plain messages (ADR-50): the library's own publisher drops expectations and hides the server's errors.
 * Only the commit is awaited. The expectation stands on the first message; the later ones ride on atomicity.
 */
async function publishBatch(connection: NatsConnection, request: AppendRequest, events: readonly EncodedEvent[]): Promise<PublishOutcome> {
  const subject = subjectOf(request.ref);
  const batchId = nuid.next();
  const lastIndex = events.length - 1;
  let earlier = '';
  for (const [index, event] of events.entries()) {
    const headers = eventHeaders(request, event, {
      'Nats-Batch-Id': batchId,
      'Nats-Batch-Sequence': String(index + 1),
      ...(index === 0 ? expectation(request) : {}),
      ...(index === lastIndex ? { 'Nats-Batch-Commit': '1' } : {}),
    });
    if (index < lastIndex) {
      earlier += publishCommand(subject, headers.toString(), event);
      continue;
    }
    sendCommands(connection, earlier);
    const reply = await connection.request(subject, event.body, { headers, timeout: PUBLISH_TIMEOUT_MS });
    return readAck(reply.data);
  }
  throw new TypeError('nothing to publish');
}

/** `HPUB` of the client protocol. Headers are of one byte a character. */
function publishCommand(subject: string, headers: string, { body, bodyBytes }: EncodedEvent): string {
  return `HPUB ${subject} ${headers.length} ${headers.length + bodyBytes}\r\n${headers}${body}\r\n`;
}

/** One piece for the whole batch: the library's own way makes six of each message, which costs more than everything else about usage. */
function sendCommands(connection: NatsConnection, commands: string): void {
  assert(connection instanceof NatsConnectionImpl, 'the connection is one of the library');
  if (connection.isClosed()) throw new errors.ClosedConnectionError();
  connection.protocol.sendCommand(Buffer.from(commands));
}

function expectation(request: AppendRequest): Readonly<Record<string, string>> {
  return request.expected === 'any' ? {} : { 'Nats-Expected-Last-Subject-Sequence': String(request.expected) };
}

interface PubAck {
  readonly seq?: number;
  readonly duplicate?: boolean;
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description: string };
}

function readAck(bytes: Uint8Array): PublishOutcome {
  const ack = JSON.parse(textOf(bytes)) as PubAck;
  if (ack.error !== undefined) throw new BrokerError(ack.error.code, ack.error.err_code ?? 0, ack.error.description);
  return { kind: 'stored', sequence: ack.seq ?? 0, duplicate: ack.duplicate === true };
}

const SEQUENCE_IN_TEXT = /wrong last sequence: (\d+)/;

function outcomeOf(error: unknown): PublishOutcome {
  if (!(error instanceof BrokerError)) return { kind: 'unclear', cause: error };
  switch (error.errorCode) {
    case brokerCodes.wrongLastSequence:
    case brokerCodes.wrongLastSequenceInFlight: {
      const actual = SEQUENCE_IN_TEXT.exec(error.message)?.[1];
      return { kind: 'conflict', actual: actual === undefined ? undefined : Number(actual) };
    }
    case brokerCodes.batchHoldsDuplicate:
      return { kind: 'batch-duplicate' };
    case brokerCodes.streamFull:
      return { kind: 'full' };
    default:
      return { kind: 'unclear', cause: error };
  }
}
