/** One record and the revision it was read at. */
export interface SharedRecord {
  readonly value: Uint8Array;
  readonly revision: number;
}

/** A record may have at most so many bytes. */
export const SHARED_RECORD_BYTES_MAX = 512 * 1_024;

/**
 * Records that every process of a service sees, and that vanish after a time the store is made with. Keys are made of letters,
 * digits, `_`, `-` and single dots. Implementations: `NatsSharedRecords` and `MemorySharedRecords` (tests); one suite runs on both.
 * A store that does not answer, or is full, throws {@link SharedRecordsUnavailableError}.
 */
export interface SharedRecords {
  get(key: string): Promise<SharedRecord | undefined>;
  /** Undefined when there is one already; else its first revision. Of several that try at once, one succeeds. */
  create(key: string, value: Uint8Array): Promise<number | undefined>;
  /** Undefined when the record is no longer at `revision`; else its new one. */
  update(key: string, value: Uint8Array, revision: number): Promise<number | undefined>;
  /** Writes whatever stands there. */
  put(key: string, value: Uint8Array): Promise<void>;
  delete(key: string): Promise<void>;
}

export class SharedRecordsUnavailableError extends Error {
  override readonly name = 'SharedRecordsUnavailableError';
  constructor(readonly reason: string, options?: ErrorOptions) {
    super(`Shared records are not available: ${reason}`, options);
  }
}
