import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { CacheLayout } from './cache-layout.js';
import { digestOf } from './file-digest.js';

const record = z.object({ path: z.string(), digest: z.string(), bytes: z.number(), modifiedMs: z.number(), inode: z.number() });

/** Digests of files that were read whole before: a file of hundreds of gigabytes is read again only after it changed. */
export class CheckedDigests {
  constructor(private readonly layout: CacheLayout) {}

  /** The digest of a file, from memory when the file did not change since. */
  async of(path: string, signal?: AbortSignal): Promise<string> {
    const found = await stat(path);
    const known = await this.load(path);
    if (known !== undefined && known.bytes === found.size && known.modifiedMs === found.mtimeMs && known.inode === found.ino) {
      const now = new Date();
      // Its time of use decides what is evicted first.
      await utimes(this.layout.check(path), now, now).catch(() => undefined);
      return known.digest;
    }
    return this.read(path, signal);
  }

  /** Reads the file whole, whatever is remembered. */
  async read(path: string, signal?: AbortSignal): Promise<string> {
    const digest = await digestOf(path, signal);
    await this.remember(path, digest);
    return digest;
  }

  async remember(path: string, digest: string): Promise<void> {
    const { size, mtimeMs, ino } = await stat(path);
    const target = this.layout.check(path);
    const fresh = `${target}.${randomUUID()}`;
    await writeFile(fresh, JSON.stringify({ path, digest, bytes: size, modifiedMs: mtimeMs, inode: ino }));
    await rename(fresh, target);
  }

  async forget(path: string): Promise<void> {
    await rm(this.layout.check(path), { force: true });
  }

  /** When the file was last used, in milliseconds since the epoch; 0 when it never was. */
  async usedAtMs(path: string): Promise<number> {
    return (await stat(this.layout.check(path)).catch(() => undefined))?.mtimeMs ?? 0;
  }

  private async load(path: string): Promise<z.infer<typeof record> | undefined> {
    const text = await readFile(this.layout.check(path), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      return record.parse(JSON.parse(text));
    } catch {
      return undefined;
    }
  }
}
