import { SharedRecordsUnavailableError, type SharedRecord, type SharedRecords } from '@penstock/kernel';
import { Kvm, type KV } from '@nats-io/kv';
import type { NatsLink } from './connect-nats.js';

export interface SharedRecordsOptions {
  /** Letters, digits, `_` and `-`. */
  readonly bucket: string;
  /** Records vanish this long after they were last written. */
  readonly ttlMs: number;
  /** On disk; a full bucket takes no new record. */
  readonly bytesMax: number;
  readonly replicas?: number | undefined;
}

/** The broker says so when a create or an update comes second: "wrong last sequence". */
const WRONG_LAST_SEQUENCE = 10_071;

/** Shared records in a NATS key-value bucket. */
export class NatsSharedRecords implements SharedRecords {
  private opened: Promise<KV> | undefined;

  constructor(private readonly link: NatsLink, private readonly options: SharedRecordsOptions) {}

  get(key: string): Promise<SharedRecord | undefined> {
    return this.attempt(async (bucket) => {
      const entry = await bucket.get(key);
      return entry === null || entry.operation !== 'PUT' ? undefined : { value: entry.value, revision: entry.revision };
    });
  }

  create(key: string, value: Uint8Array): Promise<number | undefined> {
    return this.attempt((bucket) => unlessSecond(bucket.create(key, value)));
  }

  update(key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
    return this.attempt((bucket) => unlessSecond(bucket.update(key, value, revision)));
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    await this.attempt((bucket) => bucket.put(key, value));
  }

  async delete(key: string): Promise<void> {
    await this.attempt((bucket) => bucket.purge(key));
  }

  private async attempt<Value>(work: (bucket: KV) => Promise<Value>): Promise<Value> {
    if (this.link.state() !== 'connected') throw new SharedRecordsUnavailableError('NATS is not connected');
    try {
      return await work(await this.bucket());
    } catch (error) {
      throw new SharedRecordsUnavailableError(error instanceof Error ? error.message : String(error), { cause: error });
    }
  }

  private bucket(): Promise<KV> {
    this.opened ??= openSharedBucket(this.link, this.options).catch((error: unknown) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  }
}

/** Opens a bucket, and makes it when it is not there, which only some users of the broker may. */
export function openSharedBucket(link: NatsLink, { bucket, ttlMs, bytesMax, replicas }: SharedRecordsOptions): Promise<KV> {
  return new Kvm(link.connection).create(bucket, { history: 1, ttl: ttlMs, max_bytes: bytesMax, replicas: replicas ?? 1 });
}

/** Undefined for a write that somebody else was faster with. */
async function unlessSecond(write: Promise<number>): Promise<number | undefined> {
  try {
    return await write;
  } catch (error) {
    if ((error as { code?: unknown }).code === WRONG_LAST_SEQUENCE) return undefined;
    throw error;
  }
}
