import type { ArtifactSource } from '@penstock/contract-events';

/** One file of a model version, as the registry recorded it. */
export interface ArtifactFile {
  /** Path inside the model version, with `/`. */
  readonly path: string;
  readonly bytes: number;
  /** `sha256:…` */
  readonly digest: string;
}

export interface PullRequest {
  /** The files with their digests; empty for a model version that pulls nothing. */
  readonly files: readonly ArtifactFile[];
  /** Where to take them from, in order. */
  readonly sources: readonly ArtifactSource[];
  readonly onProgress?: ((progress: ArtifactProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Progress of one file, a few times a second at most. */
export interface ArtifactProgress {
  readonly file: string;
  readonly completedBytes: number;
  readonly totalBytes: number | null;
}

/** Artifacts that lie on this node, checked, and are kept there until `release`. */
export interface PulledArtifact {
  /** The weights file, or the folder when there are several files; null when nothing is pulled. */
  readonly path: string | null;
  readonly ms: number;
  /** True when no byte was downloaded. */
  readonly fromCache: boolean;
  /** Reads every byte again and says whether the digests still hold; a damaged cached file is removed. */
  verify(): Promise<{ readonly intact: true } | { readonly intact: false; readonly reason: string }>;
  /** The cache may evict the files from now on. Safe to call twice. */
  release(): void;
}

/** Brings the artifacts of a model version onto this node. Concurrent pulls of one file share one download. */
export interface ArtifactPuller {
  /** Throws {@link ArtifactPullError}. */
  pull(request: PullRequest): Promise<PulledArtifact>;
  freeDiskBytes(): Promise<number>;
}

export type ArtifactPullCode = 'pull_failed' | 'digest_mismatch' | 'no_disk_space' | 'aborted';

/** No source gave the artifact. The message names each source with its reason, and what to do next. */
export class ArtifactPullError extends Error {
  override readonly name = 'ArtifactPullError';
  constructor(readonly code: ArtifactPullCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
