import type { StreamName } from '@penstock/contract-events';
import type { RecordedEvent } from './event-log.js';

/** An in-memory view: a fold over one or more streams. `apply` is pure; a new `version` makes old snapshots useless on purpose. */
export interface Projection<State> {
  readonly name: string;
  readonly version: number;
  readonly streams: readonly StreamName[];
  readonly initialState: () => State;
  /** Returns the next state; may mutate and return the same object, since nobody else holds it during the call. */
  apply(state: State, event: RecordedEvent): State;
  /** JSON value from which `restore` makes the state again. */
  snapshot(state: State): unknown;
  restore(snapshot: unknown): State;
}

/** Last applied sequence per stream. */
export type Positions = Readonly<Record<string, number>>;

export interface StoredSnapshot {
  readonly version: number;
  readonly positions: Positions;
  readonly state: unknown;
}

/** Best-effort store of snapshots: a miss costs a full replay, never correctness. */
export interface SnapshotStore {
  load(name: string): Promise<StoredSnapshot | undefined>;
  /** Serialises before it returns its promise, since the caller goes on changing the state. */
  save(name: string, snapshot: StoredSnapshot): Promise<void>;
}

/** A running in-memory projection. */
export interface LiveProjection<State> {
  state(): State;
  positions(): Positions;
  /** Called after each applied batch. Returns how to stop listening. */
  onChange(listener: () => void): () => void;
  /** Resolves once the event at `sequence` of `stream` is applied (read your own write). */
  waitFor(stream: StreamName, sequence: number): Promise<void>;
  close(): Promise<void>;
}

/** What the owner of a database projection can ask of it. */
export interface ProjectionControl {
  readonly name: string;
  positions(): Promise<Positions>;
  /** Resolves once `sequence` of `stream` is committed; rejects after `timeoutMs`. */
  waitFor(stream: StreamName, sequence: number, timeoutMs: number): Promise<void>;
  /** Builds a shadow from sequence 1 up to the live position and compares both, byte for byte, in canonical order. */
  verify(): Promise<ProjectionVerification>;
  /** Builds a shadow from sequence 1 and swaps it in. */
  rebuild(): Promise<ProjectionVerification>;
  close(): Promise<void>;
}

export interface ProjectionVerification {
  readonly name: string;
  readonly identical: boolean;
  readonly events: number;
  readonly rows: number;
  /** sha256 of the canonical dump, hexadecimal. */
  readonly liveDigest: string;
  readonly rebuiltDigest: string;
  readonly positions: Positions;
}
