import type { ObjectStore } from '@penstock/domain-batching';
import { FilesystemObjectStore } from './filesystem-object-store.js';
import { S3ObjectStore, type S3Settings } from './s3-object-store.js';

export type ObjectStoreSettings = { readonly kind: 'filesystem'; readonly root: string } | ({ readonly kind: 's3' } & S3Settings);

/** The store that the settings name, ready for use. `close` frees its connections. */
export async function openObjectStore(settings: ObjectStoreSettings): Promise<{ readonly store: ObjectStore; close(): void }> {
  if (settings.kind === 'filesystem') return { store: await FilesystemObjectStore.open(settings.root), close: () => undefined };
  const store = await S3ObjectStore.open(settings);
  return { store, close: () => store.close() };
}
