/** Objects larger than this are refused; a file of a batch is far smaller. */
export const OBJECT_BYTES_MAX = 64 * 1_024 ** 3;
/** Keys that one page of a listing holds at most. */
export const OBJECT_PAGE_MAX = 1_000;
/** Characters of a whole key. */
export const OBJECT_KEY_LENGTH_MAX = 800;

export type ObjectContent = Uint8Array | AsyncIterable<Uint8Array>;

export interface PutObjectOptions {
  /** Store only when there is no object under this key yet; of several that try, exactly one stores. */
  readonly ifAbsent?: boolean | undefined;
}

export type PutObjectResult =
  | { readonly kind: 'stored'; readonly bytes: number }
  /** `ifAbsent` was asked for and the key is taken; nothing was changed. */
  | { readonly kind: 'exists' };

/** Bytes from `offset` (from 0) on; `length` of them, or all that follow. A range past the end is empty. */
export interface ByteRange {
  readonly offset: number;
  readonly length?: number | undefined;
}

export interface ObjectInfo {
  readonly key: string;
  /** Size of the whole object. */
  readonly bytes: number;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly modifiedMs: number;
}

export interface ObjectReading extends ObjectInfo {
  /** The asked bytes, to be read once. A reader may leave the loop early; one that wants no bytes at all uses `head`, since an unread body holds a connection. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface ListObjectsOptions {
  /** What the page before gave as {@link ObjectPage.next}. */
  readonly cursor?: string | undefined;
  /** At most {@link OBJECT_PAGE_MAX}, which is the default. */
  readonly limit?: number | undefined;
}

export interface ObjectPage {
  /** In the store's own order, which callers must not rely on. */
  readonly objects: readonly ObjectInfo[];
  /** Where the next page begins; undefined on the last page. */
  readonly next: string | undefined;
}

/**
 * Large immutable things: files, batch results, archives. A put shows whole or not at all, and is durable when it returns.
 * Keys are those that {@link objectKeyProblem} finds nothing wrong with. A store that cannot be reached, or is full,
 * throws {@link ObjectStoreUnavailableError}; a source that fails in the middle of a put throws its own error and nothing is stored.
 */
export interface ObjectStore {
  put(key: string, content: ObjectContent, options?: PutObjectOptions): Promise<PutObjectResult>;
  /** The object or a part of it; undefined when there is none. */
  get(key: string, range?: ByteRange): Promise<ObjectReading | undefined>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Objects whose key begins with `prefix`, page by page. */
  list(prefix: string, options?: ListObjectsOptions): Promise<ObjectPage>;
  /** Does nothing when there is none. */
  delete(key: string): Promise<void>;
}

export class ObjectStoreUnavailableError extends Error {
  override readonly name = 'ObjectStoreUnavailableError';
  constructor(readonly reason: string, options?: ErrorOptions) {
    super(`The object store is not available: ${reason}`, options);
  }
}

/** The key or the content breaks the contract of {@link ObjectStore}: a bug of the caller. */
export class ObjectRefusedError extends Error {
  override readonly name = 'ObjectRefusedError';
}

const SEGMENT = /^[A-Za-z0-9._=+@,-]{1,200}$/;

/** What is wrong with a key, or undefined: parts of letters, digits and `._=+@,-`, joined by single slashes, none of them `.` or `..`. */
export function objectKeyProblem(key: string): string | undefined {
  if (key.length > OBJECT_KEY_LENGTH_MAX) return `the key has ${key.length} characters, ${OBJECT_KEY_LENGTH_MAX} are allowed`;
  const bad = key.split('/').find((segment) => !SEGMENT.test(segment) || segment === '.' || segment === '..');
  return bad === undefined ? undefined : `the part ${JSON.stringify(bad.slice(0, 40))} of the key is not allowed: use 1 to 200 letters, digits or ._=+@,- and not "." or ".."`;
}

/** Throws {@link ObjectRefusedError} for a key that no store may see. */
export function requireObjectKey(key: string): void {
  const problem = objectKeyProblem(key);
  if (problem !== undefined) throw new ObjectRefusedError(problem);
}
