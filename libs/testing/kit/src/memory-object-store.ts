import {
  OBJECT_PAGE_MAX, requireObjectKey, type ByteRange, type ListObjectsOptions, type ObjectContent, type ObjectInfo, type ObjectPage,
  type ObjectReading, type ObjectStore, type PutObjectOptions, type PutObjectResult,
} from '@penstock/domain-batching';

/** Keeps objects in memory. `failNext` makes the next call throw, for tests of what callers do then. */
export class MemoryObjectStore implements ObjectStore {
  private readonly stored = new Map<string, { readonly content: Uint8Array; readonly modifiedMs: number }>();
  private failure: Error | undefined;
  private puts = 0;

  failNext(error: Error): void {
    this.failure = error;
  }

  async put(key: string, content: ObjectContent, options: PutObjectOptions = {}): Promise<PutObjectResult> {
    requireObjectKey(key);
    this.throwFailure();
    const bytes = await collect(content);
    if (options.ifAbsent === true && this.stored.has(key)) return { kind: 'exists' };
    this.puts += 1;
    this.stored.set(key, { content: bytes, modifiedMs: this.puts });
    return { kind: 'stored', bytes: bytes.length };
  }

  async get(key: string, range?: ByteRange): Promise<ObjectReading | undefined> {
    const info = await this.head(key);
    const object = this.stored.get(key);
    if (info === undefined || object === undefined) return undefined;
    const from = range?.offset ?? 0;
    const part = object.content.slice(from, range?.length === undefined ? undefined : from + range.length);
    return { ...info, body: once(part) };
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    requireObjectKey(key);
    this.throwFailure();
    const object = this.stored.get(key);
    return object === undefined ? undefined : { key, bytes: object.content.length, modifiedMs: object.modifiedMs };
  }

  async list(prefix: string, options: ListObjectsOptions = {}): Promise<ObjectPage> {
    this.throwFailure();
    const keys = [...this.stored.keys()].filter((key) => key.startsWith(prefix) && key > (options.cursor ?? '')).sort();
    const page = keys.slice(0, Math.min(options.limit ?? OBJECT_PAGE_MAX, OBJECT_PAGE_MAX));
    const objects = (await Promise.all(page.map((key) => this.head(key)))).filter((info) => info !== undefined);
    return { objects, next: page.length < keys.length ? page.at(-1) : undefined };
  }

  async delete(key: string): Promise<void> {
    requireObjectKey(key);
    this.throwFailure();
    this.stored.delete(key);
  }

  private throwFailure(): void {
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
  }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

async function collect(content: ObjectContent): Promise<Uint8Array> {
  if (content instanceof Uint8Array) return content.slice();
  const parts: Uint8Array[] = [];
  for await (const part of content) parts.push(part.slice());
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
