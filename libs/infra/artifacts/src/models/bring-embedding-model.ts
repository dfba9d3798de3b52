import type { ArtifactSource } from '@penstock/contract-events';
import { ArtifactPullError } from '@penstock/domain-serving';
import { digestOf } from '../cache/file-digest.js';
import type { NodeArtifactCache } from '../cache/node-artifact-cache.js';
import { convertEmbeddingModel } from './convert-embedding-model.js';
import { embeddingModel } from './embedding-model.js';

export interface BringOptions {
  readonly onProgress?: ((file: string, completedBytes: number, totalBytes: number | null) => void) | undefined;
  /** Gives up the downloads. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Brings the embedding model to `path`: downloads its published files once and converts them; a file that is there already and has
 * the right digest is kept. Returns where the model version's artifact is. Throws `ArtifactPullError`.
 */
export async function bringEmbeddingModel(cache: NodeArtifactCache, path: string, options: BringOptions = {}): Promise<ArtifactSource> {
  const source: ArtifactSource = { kind: 'directory', path };
  if ((await digestOf(path).catch(() => undefined)) === embeddingModel.digest) return source;
  const pulled = await Promise.all([embeddingModel.weights, embeddingModel.vocabulary].map(async ({ sources, digest }) => {
    const { files } = await cache.fetchFirst(sources, { wanted: [], expectedDigest: digest, signal: options.signal, onProgress: ({ file, completedBytes, totalBytes }) => options.onProgress?.(file, completedBytes, totalBytes) });
    const [file] = files;
    if (file === undefined) throw new ArtifactPullError('pull_failed', `No source gave a file of ${embeddingModel.name}.`);
    return file;
  }));
  try {
    const [weights, vocabulary] = pulled;
    await convertEmbeddingModel(weights?.absolutePath ?? '', vocabulary?.absolutePath ?? '', path);
  } finally {
    for (const file of pulled) file.hold?.release();
  }
  const digest = await digestOf(path);
  if (digest !== embeddingModel.digest) throw new ArtifactPullError('digest_mismatch', `The conversion of ${embeddingModel.name} gave ${digest} instead of ${embeddingModel.digest}. Report it; the model is not registered.`);
  return source;
}
