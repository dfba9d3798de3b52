import { randomUUID } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { link, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import {
  OBJECT_BYTES_MAX, OBJECT_PAGE_MAX, ObjectRefusedError, ObjectStoreUnavailableError, requireObjectKey, type ByteRange, type ListObjectsOptions,
  type ObjectContent, type ObjectInfo, type ObjectPage, type ObjectReading, type ObjectStore, type PutObjectOptions, type PutObjectResult,
} from '@penstock/domain-batching';

/** Ends the name of every file: no key holds it, so that the key `a` (a file) and `a/b` (in a folder) live side by side. */
const FILE_MARK = '~';
/** A delete may remove a folder that a put has just made; the put makes it again. */
const PLACE_ATTEMPTS_MAX = 10;
const MODE_FOLDER = 0o700;
const MODE_FILE = 0o600;
const BUSY_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EACCES', 'EPERM', 'ENOTDIR', 'EEXIST', 'EMFILE', 'ENFILE']);

/** Objects as files under one folder. New content is written aside, forced to disk and then renamed or linked into place. */
export class FilesystemObjectStore implements ObjectStore {
  private readonly objects: string;
  private readonly staging: string;

  private constructor(root: string) {
    this.objects = join(root, 'objects');
    this.staging = join(root, 'staging');
  }

  /** Makes the folder where needed, and drops what a crash left half written. One process at a time uses a folder. */
  static async open(root: string): Promise<FilesystemObjectStore> {
    const store = new FilesystemObjectStore(root);
    await translateErrors(async () => {
      await rm(store.staging, { recursive: true, force: true });
      for (const folder of [store.objects, store.staging]) await mkdir(folder, { recursive: true, mode: MODE_FOLDER });
    });
    return store;
  }

  async put(key: string, content: ObjectContent, options: PutObjectOptions = {}): Promise<PutObjectResult> {
    const target = this.fileOf(key);
    const fresh = join(this.staging, randomUUID());
    return translateErrors(async () => {
      try {
        if (options.ifAbsent === true && (await isThere(target))) return { kind: 'exists' };
        const bytes = await writeDurably(fresh, content);
        const isPlaced = await this.place(fresh, target, options.ifAbsent === true);
        return isPlaced ? { kind: 'stored', bytes } : { kind: 'exists' };
      } finally {
        await rm(fresh, { force: true });
      }
    });
  }

  async get(key: string, range?: ByteRange): Promise<ObjectReading | undefined> {
    const path = this.fileOf(key);
    const info = await this.head(key);
    if (info === undefined) return undefined;
    const from = Math.min(range?.offset ?? 0, info.bytes);
    const to = range?.length === undefined ? info.bytes : Math.min(from + range.length, info.bytes);
    return { ...info, body: readPart(path, from, to) };
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    const path = this.fileOf(key);
    const status = await translateErrors(() => stat(path).catch(unlessMissing));
    return status === undefined ? undefined : { key, bytes: status.size, modifiedMs: status.mtimeMs };
  }

  async list(prefix: string, options: ListObjectsOptions = {}): Promise<ObjectPage> {
    const limit = Math.min(options.limit ?? OBJECT_PAGE_MAX, OBJECT_PAGE_MAX);
    return translateErrors(async () => {
      const objects: ObjectInfo[] = [];
      for await (const key of this.keysFrom('', prefix, options.cursor ?? '')) {
        // One more than fits tells that there is another page.
        if (objects.length === limit) return { objects, next: objects.at(-1)?.key };
        const info = await this.head(key);
        if (info !== undefined) objects.push(info);
      }
      return { objects, next: undefined };
    });
  }

  async delete(key: string): Promise<void> {
    const path = this.fileOf(key);
    await translateErrors(async () => {
      await rm(path, { force: true });
      await syncFolder(dirname(path)).catch(unlessMissing);
      for (let folder = dirname(path); folder.startsWith(this.objects + sep); folder = dirname(folder)) {
        const isRemoved = await rmdir(folder).then(() => true, () => false);
        if (!isRemoved) return;
      }
    });
  }

  private fileOf(key: string): string {
    requireObjectKey(key);
    return join(this.objects, ...key.split('/')) + FILE_MARK;
  }

  /** A link fails when the name is taken and so decides a race; a rename replaces. */
  private async place(fresh: string, target: string, ifAbsent: boolean): Promise<boolean> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await mkdir(dirname(target), { recursive: true, mode: MODE_FOLDER });
        if (ifAbsent) await link(fresh, target);
        else await rename(fresh, target);
        for (let folder = dirname(target); folder.startsWith(this.objects); folder = dirname(folder)) await syncFolder(folder);
        return true;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code === 'EEXIST' && ifAbsent) return false;
        if (code !== 'ENOENT' || attempt >= PLACE_ATTEMPTS_MAX) throw error;
      }
    }
  }

  /** Keys after `cursor` that begin with `prefix`, in the order of their file names, without walking folders that cannot match. */
  private async *keysFrom(folder: string, prefix: string, cursor: string): AsyncIterable<string> {
    const entries: readonly Dirent[] = (await readdir(join(this.objects, folder), { withFileTypes: true }).catch(unlessMissing)) ?? [];
    const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name.slice(0, -FILE_MARK.length)));
    for (const name of names.sort(byCodeUnits)) {
      const key = folder + name;
      if (name.endsWith('/')) {
        const mayMatch = key.startsWith(prefix) || prefix.startsWith(key);
        if (mayMatch && (key > cursor || cursor.startsWith(key))) yield* this.keysFrom(key, prefix, cursor);
      } else if (key.startsWith(prefix) && key > cursor) yield key;
    }
  }
}

function byCodeUnits(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

async function writeDurably(path: string, content: ObjectContent): Promise<number> {
  const file = await open(path, 'wx', MODE_FILE);
  try {
    let bytes = 0;
    for await (const chunk of content instanceof Uint8Array ? [content] : content) {
      bytes += chunk.length;
      if (bytes > OBJECT_BYTES_MAX) throw new ObjectRefusedError(`the object is larger than ${OBJECT_BYTES_MAX} bytes`);
      await file.writeFile(chunk);
    }
    await file.sync();
    return bytes;
  } finally {
    await file.close();
  }
}

/** Opens the file only when the first bytes are asked for, so that a body nobody reads holds nothing. */
async function* readPart(path: string, from: number, to: number): AsyncIterable<Uint8Array> {
  if (from >= to) return;
  yield* createReadStream(path, { start: from, end: to - 1 }) as AsyncIterable<Buffer>;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(unlessMissing)) !== undefined;
}

/** ENOTDIR cannot come from a key, but from a file that somebody put between the folders by hand. */
function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}

async function translateErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined || !BUSY_CODES.has(code)) throw error;
    const reason = code === 'ENOSPC' || code === 'EDQUOT' ? 'the disk is full; free some space or move the data folder' : message;
    throw new ObjectStoreUnavailableError(reason, { cause: error });
  }
}
