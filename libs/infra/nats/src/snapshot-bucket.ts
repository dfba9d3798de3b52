import { Kvm, type KV } from '@nats-io/kv';
import type { NatsLink } from './connect-nats.js';

export const SNAPSHOT_STREAM = 'KV_SNAPSHOTS';
const BUCKET = 'SNAPSHOTS';
const BUCKET_BYTES_MAX = 256 * 1_024 * 1_024;

/** Opens the bucket of snapshots, and makes it when it is not there. */
export function openSnapshotBucket(link: NatsLink, replicas = 1): Promise<KV> {
  return new Kvm(link.connection).create(BUCKET, { history: 1, max_bytes: BUCKET_BYTES_MAX, replicas });
}
