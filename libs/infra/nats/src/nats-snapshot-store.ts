import { createHash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { silentLogger, type Logger, type SnapshotStore, type StoredSnapshot } from '@penstock/kernel';
import type { KV } from '@nats-io/kv';
import { z } from 'zod';
import type { NatsLink } from './connect-nats.js';
import { openSnapshotBucket } from './snapshot-bucket.js';

/** The broker takes messages up to 1 MiB. */
const CHUNK_BYTES = 512 * 1_024;
/** A state that is larger, compressed, belongs into a database projection. */
const SNAPSHOT_BYTES_MAX = 64 * 1_024 * 1_024;

const head = z.object({ generation: z.string(), chunks: z.int().positive(), sha256: z.string() });
const snapshotShape = z.object({ version: z.number(), positions: z.record(z.string(), z.number()), state: z.unknown() });

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Snapshots of in-memory projections in a KV bucket: compressed, in chunks, the head written last. */
export class NatsSnapshotStore implements SnapshotStore {
  private opened: Promise<KV> | undefined;
  private readonly logger: Logger;

  constructor(private readonly link: NatsLink, options: { readonly logger?: Logger | undefined } = {}) {
    this.logger = options.logger ?? silentLogger;
  }

  async load(name: string): Promise<StoredSnapshot | undefined> {
    try {
      const bucket = await this.bucket();
      const entry = await bucket.get(`${name}.head`);
      if (entry === null || entry.operation !== 'PUT') return undefined;
      const { generation, chunks, sha256 } = head.parse(entry.json());
      const parts = await Promise.all(Array.from({ length: chunks }, async (_, index) => (await bucket.get(chunkKey(name, generation, index)))?.value));
      if (parts.includes(undefined)) return undefined;
      const bytes = Buffer.concat(parts.filter((part) => part !== undefined));
      if (createHash('sha256').update(bytes).digest('hex') !== sha256) return undefined;
      return snapshotShape.parse(JSON.parse((await decompress(bytes)).toString('utf8')));
    } catch (error) {
      this.logger.warn({ err: error, name }, 'cannot read a snapshot; the projection replays from the start');
      return undefined;
    }
  }

  save(name: string, snapshot: StoredSnapshot): Promise<void> {
    // Before the first await: the caller goes on changing the state.
    const text = JSON.stringify(snapshot);
    return this.write(name, text).catch((error: unknown) => this.logger.warn({ err: error, name }, 'cannot write a snapshot; the next start takes longer'));
  }

  private async write(name: string, text: string): Promise<void> {
    const bytes = await compress(text);
    if (bytes.length > SNAPSHOT_BYTES_MAX) throw new RangeError(`the snapshot has ${bytes.length} bytes, more than ${SNAPSHOT_BYTES_MAX}`);
    const bucket = await this.bucket();
    const before = await bucket.get(`${name}.head`);
    const generation = randomUUID();
    const chunks = Math.max(1, Math.ceil(bytes.length / CHUNK_BYTES));
    for (let index = 0; index < chunks; index += 1) {
      await bucket.put(chunkKey(name, generation, index), bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES));
    }
    await bucket.put(`${name}.head`, JSON.stringify({ generation, chunks, sha256: createHash('sha256').update(bytes).digest('hex') }));
    const old = before === null ? undefined : head.safeParse(before.json()).data;
    if (old === undefined) return;
    for (let index = 0; index < old.chunks; index += 1) await bucket.purge(chunkKey(name, old.generation, index));
  }

  private bucket(): Promise<KV> {
    this.opened ??= openSnapshotBucket(this.link).catch((error: unknown) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  }
}

function chunkKey(name: string, generation: string, index: number): string {
  return `${name}.${generation}.${index}`;
}
