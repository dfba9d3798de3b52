import { createHash, type Hash } from 'node:crypto';
import { open, readFile, rm, stat, truncate, writeFile, type FileHandle } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ArtifactPullError } from '@penstock/domain-serving';
import { z } from 'zod';
import { hashInto } from '../cache/file-digest.js';
import { noDiskSpace, type BlobStore } from '../cache/blob-store.js';
import { httpGet, HttpStatusError, type HttpBody } from './http-get.js';
import type { RemoteFile } from './remote-file.js';

/** Attempts in a row that bring no new byte before a download is given up. */
const FRUITLESS_ATTEMPTS_MAX = 4;
/** The same where not even a connection comes about: the next source is better than waiting. */
const UNREACHABLE_ATTEMPTS_MAX = 2;
const BACKOFF_MS = 250;

const partialState = z.object({ etag: z.string().nullable() });

export interface DownloadContext {
  readonly store: BlobStore;
  /** Path of the partial file; `<path>.json` beside it says of which version it is. */
  readonly partialPath: string;
  readonly signal: AbortSignal;
  readonly onProgress: (completedBytes: number, totalBytes: number | null) => void;
}

export interface Downloaded {
  /** sha256, hexadecimal. */
  readonly hex: string;
  readonly bytes: number;
  /** What the hub said the sha256 is. */
  readonly announcedSha256: string | undefined;
}

/**
 * Downloads a file into its partial path, going on where an earlier attempt (of any process) ended, and again after each cut.
 * The digest is computed on the way. Throws `ArtifactPullError`, `HttpStatusError` or the network's error.
 */
export async function downloadFile(file: RemoteFile, context: DownloadContext): Promise<Downloaded> {
  let fruitless = 0;
  for (;;) {
    const before = await sizeOf(context.partialPath);
    try {
      return await attempt(file, before, context);
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof ArtifactPullError || (error instanceof HttpStatusError && error.isFinal)) throw error;
      if (isDiskFull(error)) throw noDiskSpace(file.path, 1, await context.store.freeBytes(), context.store.layout.root);
      fruitless = (await sizeOf(context.partialPath)) > before ? 0 : fruitless + 1;
      if (fruitless >= (isUnreachable(error) ? UNREACHABLE_ATTEMPTS_MAX : FRUITLESS_ATTEMPTS_MAX)) throw error;
      await delay(BACKOFF_MS * 2 ** fruitless, undefined, { signal: context.signal });
    }
  }
}

async function attempt(file: RemoteFile, have: number, context: DownloadContext): Promise<Downloaded> {
  const { partialPath, signal } = context;
  const etag = have > 0 ? await etagOf(partialPath) : undefined;
  const response = await httpGet(file, etag === undefined ? 0 : have, etag, signal);
  const offset = await startingOffset(response, have, partialPath);
  const hash = createHash('sha256');
  await hashInto(hash, partialPath, offset, signal);
  if (response.status === 416) {
    await response.body.dump();
  } else {
    await context.store.requireSpace((response.totalBytes ?? response.contentBytes ?? 0) - offset, file.path);
    await writeFile(`${partialPath}.json`, JSON.stringify({ etag: response.etag ?? null }));
    await append(response, hash, offset, context);
  }
  const bytes = await sizeOf(partialPath);
  if (response.totalBytes !== undefined && bytes !== response.totalBytes) throw new Error(`the connection ended after ${bytes} of ${response.totalBytes} bytes`);
  return { hex: hash.digest('hex'), bytes, announcedSha256: response.announcedSha256 };
}

/** Where this answer goes on: at the end of what is there, or at zero when the server starts over. */
async function startingOffset(response: HttpBody, have: number, partialPath: string): Promise<number> {
  if (response.status === 416 && response.totalBytes === have) return have;
  if (response.status === 206 && response.rangeStart === have) return have;
  if (response.status !== 200) {
    await response.body.dump();
    await discardPartial(partialPath);
    throw new Error('the server answered another range than was asked for; the download starts over');
  }
  if (have > 0) await truncate(partialPath, 0);
  return 0;
}

async function append(response: HttpBody, hash: Hash, offset: number, { partialPath, onProgress }: DownloadContext): Promise<void> {
  const handle: FileHandle = await open(partialPath, offset === 0 ? 'w' : 'a', 0o644);
  let completed = offset;
  try {
    onProgress(completed, response.totalBytes ?? null);
    for await (const chunk of response.body) {
      const bytes = chunk as Buffer;
      await handle.write(bytes);
      hash.update(bytes);
      completed += bytes.length;
      onProgress(completed, response.totalBytes ?? null);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes a partial download and what is known of it. */
export async function discardPartial(partialPath: string): Promise<void> {
  await rm(partialPath, { force: true });
  await rm(`${partialPath}.json`, { force: true });
}

async function etagOf(partialPath: string): Promise<string | undefined> {
  const text = await readFile(`${partialPath}.json`, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return partialState.parse(JSON.parse(text)).etag ?? undefined;
  } catch {
    return undefined;
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

function isUnreachable(error: unknown): boolean {
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === 'ENOSPC' || code === 'EDQUOT';
}
