import type { SnapshotStore, StoredSnapshot } from '@penstock/kernel';

/** Keeps snapshots as JSON text, as a real store does. */
export class MemorySnapshotStore implements SnapshotStore {
  private readonly texts = new Map<string, string>();

  load(name: string): Promise<StoredSnapshot | undefined> {
    const text = this.texts.get(name);
    return Promise.resolve(text === undefined ? undefined : (JSON.parse(text) as StoredSnapshot));
  }

  save(name: string, snapshot: StoredSnapshot): Promise<void> {
    this.texts.set(name, JSON.stringify(snapshot));
    return Promise.resolve();
  }
}
