import type { Context, StreamName } from '@penstock/contract-events';

/** Names one aggregate: the subject is `ev.<context>.<aggregate>.<id>`. */
export interface AggregateRef {
  readonly context: Context;
  readonly aggregate: string;
  readonly id: string;
}

/** An event that a decider returned and that is not stored yet. `type` carries its version, such as `replica.ready.v1`. */
export interface NewEvent<Type extends string = string, Data = unknown> {
  readonly type: Type;
  readonly data: Data;
  /** `data` as JSON, from a writer that has it already and answers for it: it is stored as it is. */
  readonly json?: string | undefined;
  /** Left out where the event has no other origin than its append. */
  readonly origin?: EventOrigin | undefined;
}

/**
 * What an event would say of itself in an append of its own, for facts of several commands that go into one append. Its id is
 * `<commandId>.0`. Such an append must hold no event that was ever part of another append: a repeat is recognised as a whole.
 */
export interface EventOrigin extends Causation {
  readonly commandId: string;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/** What ties an event to its cause. */
export interface Causation {
  /** One id for everything that follows from one outside request. */
  readonly correlationId: string;
  /** The id of the command or event that led here. */
  readonly causationId: string;
  /** W3C trace context, when the caller was traced. */
  readonly traceparent?: string | undefined;
}

/** An event as it stands in the log, upcast to the newest version of its type. */
export interface RecordedEvent<Type extends string = string, Data = unknown> extends NewEvent<Type, Data>, Causation {
  /** CloudEvents id: stable over retries of the same command. */
  readonly id: string;
  /** CloudEvents source: the service that wrote it, such as `penstock/registry`. */
  readonly source: string;
  /** ISO 8601 time at which the writer decided. */
  readonly time: string;
  readonly ref: AggregateRef;
  readonly stream: StreamName;
  /** Position in the stream, from 1, with gaps only where messages were removed. */
  readonly sequence: number;
}

/**
 * What the writer believes about the aggregate: `0` says that it does not exist yet, a positive number is the stream
 * sequence of its last event, `any` appends without a check (facts that depend on nothing, such as usage).
 */
export type ExpectedSequence = number | 'any';

export interface AppendRequest extends Causation {
  readonly ref: AggregateRef;
  /** One to {@link APPEND_EVENTS_MAX} events; all are stored or none. */
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedSequence;
  /** Makes a retry of the same command store nothing twice: event ids are `<commandId>.<index>`. */
  readonly commandId: string;
  readonly source: string;
  /** Milliseconds since the epoch: the `now` the decision was made with. */
  readonly nowMs: number;
}

/** More events than this in one append is a design fault: the broker stages a batch in memory. */
export const APPEND_EVENTS_MAX = 500;

export type AppendResult =
  /** Stored, or found stored already by an earlier attempt of the same command (`duplicate`). */
  | { readonly kind: 'appended'; readonly lastSequence: number; readonly duplicate: boolean }
  /** Somebody else wrote first: load again and decide again. `actual` is the aggregate's last sequence where known. */
  | { readonly kind: 'conflict'; readonly actual: number | undefined };

/** Handle of a running subscription. `closed` settles once nothing is delivered any more. */
export interface Subscription {
  close(): Promise<void>;
}

export interface StreamBounds {
  /** Sequence of the oldest event that is still stored; 1 on a stream that lost nothing. */
  readonly firstSequence: number;
  /** Sequence of the newest event; 0 on an empty stream. */
  readonly lastSequence: number;
}

/**
 * The event log. Implementations: `NatsEventLog` (JetStream) and `MemoryEventLog` (tests); one suite runs on both.
 * Failures of the broker throw {@link EventLogUnavailableError}; expected outcomes are return values.
 */
export interface EventLog {
  /** Appends all events to one aggregate, atomically, in order. */
  append(request: AppendRequest): Promise<AppendResult>;
  /** Every event of one aggregate in order, optionally only those after a known sequence. Reads what this process wrote. */
  load(ref: AggregateRef, afterSequence?: number): Promise<readonly RecordedEvent[]>;
  /** Batches from `fromSequence` (inclusive, default 1) up to what was the end of the stream when the call was made. */
  read(stream: StreamName, options?: ReadOptions): AsyncIterable<readonly RecordedEvent[]>;
  /**
   * Like `read`, then goes on with what arrives. Batches are delivered one after the other; the handler is awaited.
   * A handler that rejects gets the same batch again, with growing delays, until it succeeds or the subscription is closed.
   */
  tail(stream: StreamName, fromSequence: number, onBatch: BatchHandler): Promise<Subscription>;
  bounds(stream: StreamName): Promise<StreamBounds>;
}

/**
 * Takes one batch. `throughSequence` is the position after it: beyond the last event where unreadable ones were skipped,
 * so that `events` may even be empty. Store it as the checkpoint.
 */
export type BatchHandler = (events: readonly RecordedEvent[], throughSequence: number) => void | Promise<void>;

export interface ReadOptions {
  readonly fromSequence?: number | undefined;
  /** Last sequence to deliver (inclusive). */
  readonly toSequence?: number | undefined;
  readonly batchSize?: number | undefined;
}

/** The broker did not answer, or refused for a reason that may pass. The command may be retried with the same id. */
export class EventLogUnavailableError extends Error {
  override readonly name = 'EventLogUnavailableError';
  constructor(readonly reason: string, options?: ErrorOptions) {
    super(`The event log is not available: ${reason}`, options);
  }
}

/** An event of an aggregate cannot be read, so the aggregate's state is not known. Deploy the version that knows the type. */
export class UnreadableEventError extends Error {
  override readonly name = 'UnreadableEventError';
  constructor(readonly stream: StreamName, readonly sequence: number, reason: string) {
    super(`Event ${sequence} of ${stream} cannot be read: ${reason}. Deploy a version that knows this type, or add an upcaster.`);
  }
}

/** The stream reached its size limit (`discard: new`): nothing was stored. Raise the limit or archive. */
export class EventLogFullError extends Error {
  override readonly name = 'EventLogFullError';
  constructor(readonly stream: StreamName) {
    super(`Stream ${stream} is full: raise its size limit or archive old events, then retry.`);
  }
}
