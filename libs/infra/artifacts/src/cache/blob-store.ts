import { readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ArtifactPullError } from '@penstock/domain-serving';
import type { CacheLayout } from './cache-layout.js';
import { CheckedDigests } from './checked-digests.js';
import { isAlive } from './cross-process-lock.js';

/** Left free on the disk whatever is pulled, so that logs and the event spool can go on. */
const DISK_RESERVE_BYTES = 256 * 1_048_576;

/** Keeps a blob from eviction until it is released. */
export interface BlobHold {
  release(): void;
}

/** Files by their digest. */
export class BlobStore {
  readonly checked: CheckedDigests;
  private readonly releasing = new Set<Promise<unknown>>();

  constructor(readonly layout: CacheLayout, private readonly bytesMax: number, private readonly freeBytesOf: (path: string) => Promise<number> = freeDiskBytes) {
    this.checked = new CheckedDigests(layout);
  }

  /** Path of a blob that is there and intact; a damaged one is removed. */
  async find(hex: string, signal?: AbortSignal): Promise<string | undefined> {
    const path = this.layout.blob(hex);
    if ((await stat(path).catch(() => undefined)) === undefined) return undefined;
    if ((await this.checked.of(path, signal)) === `sha256:${hex}`) return path;
    await this.remove(hex);
    return undefined;
  }

  /** Moves a complete, checked file in. Hold it, then call `evict`. */
  async commit(partialPath: string, hex: string): Promise<string> {
    const path = this.layout.blob(hex);
    await rename(partialPath, path);
    await this.checked.remember(path, `sha256:${hex}`);
    return path;
  }

  async remove(hex: string): Promise<void> {
    await rm(this.layout.blob(hex), { force: true });
    await this.checked.forget(this.layout.blob(hex));
  }

  /** The hold is a file that names this process: other processes on the node respect it while this one lives. */
  async hold(hex: string): Promise<BlobHold> {
    const path = join(this.layout.holds, `${hex}.${process.pid}.${randomUUID()}`);
    await writeFile(path, '');
    return {
      release: () => {
        const removal = rm(path, { force: true }).catch(() => undefined);
        this.releasing.add(removal);
        void removal.finally(() => this.releasing.delete(removal));
      },
    };
  }

  freeBytes(): Promise<number> {
    return this.freeBytesOf(this.layout.root);
  }

  /** Makes room by evicting what is not in use. Throws `no_disk_space` when that is not enough. */
  async requireSpace(neededBytes: number, what: string): Promise<void> {
    const missing = async (): Promise<number> => neededBytes + DISK_RESERVE_BYTES - (await this.freeBytes());
    if ((await missing()) <= 0) return;
    await this.evict(await missing());
    const short = await missing();
    if (short > 0) throw noDiskSpace(what, neededBytes + DISK_RESERVE_BYTES, await this.freeBytes(), this.layout.root);
  }

  /** Removes least recently used blobs, never one in use, until the cache is inside its limit and `extraBytes` more are free. */
  async evict(extraBytes: number): Promise<void> {
    await Promise.all(this.releasing);
    const blobs = await this.list();
    const held = await this.heldDigests();
    let excess = Math.max(blobs.reduce((sum, blob) => sum + blob.bytes, 0) - this.bytesMax, extraBytes);
    for (const blob of blobs.sort((a, b) => a.usedAtMs - b.usedAtMs)) {
      if (excess <= 0) return;
      if (held.has(blob.hex)) continue;
      await this.remove(blob.hex);
      excess -= blob.bytes;
    }
  }

  private async list(): Promise<{ hex: string; bytes: number; usedAtMs: number }[]> {
    const found: { hex: string; bytes: number; usedAtMs: number }[] = [];
    for (const hex of await readdir(this.layout.blobs)) {
      const path = this.layout.blob(hex);
      const size = (await stat(path).catch(() => undefined))?.size;
      if (size !== undefined) found.push({ hex, bytes: size, usedAtMs: await this.checked.usedAtMs(path) });
    }
    return found;
  }

  private async heldDigests(): Promise<ReadonlySet<string>> {
    const held = new Set<string>();
    for (const name of await readdir(this.layout.holds)) {
      const [hex = '', pid = ''] = name.split('.');
      if (isAlive(Number(pid))) held.add(hex);
      else await rm(join(this.layout.holds, name), { force: true });
    }
    return held;
  }
}

export function noDiskSpace(what: string, neededBytes: number, freeBytes: number, root: string): ArtifactPullError {
  const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1_000_000)} MB`;
  return new ArtifactPullError(
    'no_disk_space', `No space for ${what}: ${megabytes(neededBytes)} are needed in ${root}, ${megabytes(freeBytes)} are free. Free some, or keep the cache on another disk (PENSTOCK_CACHE).`,
  );
}

async function freeDiskBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
