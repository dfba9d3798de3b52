import { Readable } from 'node:stream';
import {
  CreateBucketCommand, DeleteObjectCommand, GetObjectCommand, HeadBucketCommand, HeadObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import {
  OBJECT_BYTES_MAX, OBJECT_PAGE_MAX, ObjectRefusedError, ObjectStoreUnavailableError, requireObjectKey, type ByteRange, type ListObjectsOptions,
  type ObjectContent, type ObjectInfo, type ObjectPage, type ObjectReading, type ObjectStore, type PutObjectOptions, type PutObjectResult,
} from '@penstock/domain-batching';

/** Streams go up in parts of this size, so that memory stays at two parts per upload. */
const PART_BYTES = 8 * 1_048_576;
const PARTS_AT_ONCE = 2;
const ATTEMPTS_MAX = 4;
const CONNECT_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Two conditional writes at the same moment may both be told to come back. */
const CONFLICT_ATTEMPTS_MAX = 5;

export interface S3Settings {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly forcePathStyle: boolean;
}

/** Objects in a bucket of any service that speaks S3 with conditional writes. */
export class S3ObjectStore implements ObjectStore {
  private constructor(private readonly client: S3Client, private readonly bucket: string) {}

  /** Checks the credentials and makes the bucket where needed. */
  static async open(settings: S3Settings): Promise<S3ObjectStore> {
    const client = new S3Client({
      endpoint: settings.endpoint, region: settings.region, forcePathStyle: settings.forcePathStyle, maxAttempts: ATTEMPTS_MAX,
      credentials: { accessKeyId: settings.accessKeyId, secretAccessKey: settings.secretAccessKey },
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
    });
    const store = new S3ObjectStore(client, settings.bucket);
    try {
      await store.requireBucket();
      return store;
    } catch (error) {
      client.destroy();
      throw error;
    }
  }

  async put(key: string, content: ObjectContent, options: PutObjectOptions = {}): Promise<PutObjectResult> {
    requireObjectKey(key);
    const condition = options.ifAbsent === true ? { IfNoneMatch: '*' } : {};
    const target = { Bucket: this.bucket, Key: key, ...condition };
    return content instanceof Uint8Array ? this.putBytes(target, content) : this.putStream(target, content);
  }

  async get(key: string, range?: ByteRange): Promise<ObjectReading | undefined> {
    requireObjectKey(key);
    // S3 has no word for an empty range.
    if (range?.length === 0) return this.emptyReading(key);
    const bytesHeader = range === undefined ? {} : { Range: `bytes=${range.offset}-${range.length === undefined ? '' : range.offset + range.length - 1}` };
    try {
      const found = await this.client.send(new GetObjectCommand({ Bucket: this.bucket, Key: key, ...bytesHeader }));
      const bytes = totalBytes(found.ContentRange) ?? found.ContentLength ?? 0;
      const body = found.Body as (Readable & AsyncIterable<Uint8Array>) | undefined;
      return { key, bytes, modifiedMs: found.LastModified?.getTime() ?? 0, body: body === undefined ? nothing() : readBody(body) };
    } catch (error) {
      if (isMissing(error)) return undefined;
      if (statusOf(error) === 416) return this.emptyReading(key);
      throw translated(error);
    }
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    requireObjectKey(key);
    try {
      const found = await this.client.send(new HeadObjectCommand({ Bucket: this.bucket, Key: key }));
      return { key, bytes: found.ContentLength ?? 0, modifiedMs: found.LastModified?.getTime() ?? 0 };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw translated(error);
    }
  }

  async list(prefix: string, options: ListObjectsOptions = {}): Promise<ObjectPage> {
    const limit = Math.min(options.limit ?? OBJECT_PAGE_MAX, OBJECT_PAGE_MAX);
    try {
      const page = await this.client.send(new ListObjectsV2Command({ Bucket: this.bucket, Prefix: prefix, MaxKeys: limit, ContinuationToken: options.cursor }));
      const objects = (page.Contents ?? []).map((object) => ({ key: object.Key ?? '', bytes: object.Size ?? 0, modifiedMs: object.LastModified?.getTime() ?? 0 }));
      return { objects, next: page.IsTruncated === true ? page.NextContinuationToken : undefined };
    } catch (error) {
      throw translated(error);
    }
  }

  async delete(key: string): Promise<void> {
    requireObjectKey(key);
    try {
      await this.client.send(new DeleteObjectCommand({ Bucket: this.bucket, Key: key }));
    } catch (error) {
      if (!isMissing(error)) throw translated(error);
    }
  }

  /** Closes the connections. */
  close(): void {
    this.client.destroy();
  }

  private async requireBucket(): Promise<void> {
    try {
      await this.client.send(new HeadBucketCommand({ Bucket: this.bucket }));
    } catch (error) {
      if (!isMissing(error)) throw translated(error);
      await this.client.send(new CreateBucketCommand({ Bucket: this.bucket })).catch((failure: unknown) => {
        // Another process made it meanwhile.
        if (statusOf(failure) !== 409) throw translated(failure);
      });
    }
  }

  private async putBytes(target: PutTarget, content: Uint8Array): Promise<PutObjectResult> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.client.send(new PutObjectCommand({ ...target, Body: content }));
        return { kind: 'stored', bytes: content.length };
      } catch (error) {
        if (statusOf(error) === 412) return { kind: 'exists' };
        if (statusOf(error) !== 409 || attempt >= CONFLICT_ATTEMPTS_MAX) throw translated(error);
      }
    }
  }

  private async putStream(target: PutTarget, content: AsyncIterable<Uint8Array>): Promise<PutObjectResult> {
    if (target.IfNoneMatch !== undefined && (await this.head(target.Key)) !== undefined) return { kind: 'exists' };
    const counter = new CountedSource(content);
    const upload = new Upload({ client: this.client, params: { ...target, Body: Readable.from(counter) }, partSize: PART_BYTES, queueSize: PARTS_AT_ONCE });
    try {
      await upload.done();
      return { kind: 'stored', bytes: counter.bytes };
    } catch (error) {
      if (counter.failure !== undefined) throw counter.failure;
      if (statusOf(error) === 412) return { kind: 'exists' };
      throw translated(error);
    }
  }

  private async emptyReading(key: string): Promise<ObjectReading | undefined> {
    const info = await this.head(key);
    return info === undefined ? undefined : { ...info, body: nothing() };
  }
}

interface PutTarget {
  readonly Bucket: string;
  readonly Key: string;
  readonly IfNoneMatch?: string;
}

/** Counts what passes and keeps the source's own error apart from the service's. */
class CountedSource implements AsyncIterable<Uint8Array> {
  bytes = 0;
  failure: Error | undefined;

  constructor(private readonly source: AsyncIterable<Uint8Array>) {}

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    try {
      for await (const chunk of this.source) {
        this.bytes += chunk.length;
        if (this.bytes > OBJECT_BYTES_MAX) throw new ObjectRefusedError(`the object is larger than ${OBJECT_BYTES_MAX} bytes`);
        yield chunk;
      }
    } catch (error) {
      this.failure = error as Error;
      throw error;
    }
  }
}

async function* nothing(): AsyncIterable<Uint8Array> {
  // Nothing to give.
}

async function* readBody(body: Readable & AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw translated(error);
  }
}

/** The whole size out of `bytes 0-9/100`. */
function totalBytes(contentRange: string | undefined): number | undefined {
  const total = contentRange?.split('/')[1];
  return total === undefined ? undefined : Number(total);
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
}

function isMissing(error: unknown): boolean {
  return statusOf(error) === 404;
}

function translated(error: unknown): Error {
  if (error instanceof ObjectStoreUnavailableError || error instanceof ObjectRefusedError) return error;
  const { name, message, code } = error as NodeJS.ErrnoException;
  return new ObjectStoreUnavailableError(`${name}: ${message !== '' ? message : (code ?? 'no reason given')}`, { cause: error });
}
