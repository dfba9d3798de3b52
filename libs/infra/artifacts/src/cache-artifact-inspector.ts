import type { ArtifactSource } from '@penstock/contract-events';
import { ArtifactInspectionError, type ArtifactHeader, type ArtifactInspector, type InspectedArtifact, type InspectionProgress } from '@penstock/domain-catalog';
import { ArtifactPullError } from '@penstock/domain-serving';
import { describeFailure } from './cache/describe-source.js';
import type { NodeArtifactCache } from './cache/node-artifact-cache.js';
import type { FetchedFile } from './cache/source-fetcher.js';
import { InvalidModelFileError } from './headers/file-window.js';
import { readGgufHeader } from './headers/gguf-header.js';
import { readOnnxHeader } from './headers/onnx-header.js';
import { readSafetensorsHeader } from './headers/safetensors-header.js';

const NO_HEADER: ArtifactHeader = {
  format: 'none', architecture: null, parameters: null, precision: null, layers: null, contextTokensMax: null, kvBytesPerToken: null, weightBytes: 0, license: null, randomWeights: false,
};

/** Inspects artifacts through the node's cache, so that a registry and an agent on one machine download once. */
export class CacheArtifactInspector implements ArtifactInspector {
  constructor(private readonly cache: NodeArtifactCache) {}

  async inspect(
    source: ArtifactSource, fallbackSources: readonly ArtifactSource[], expectedDigest: string | null, onProgress?: (progress: InspectionProgress) => void,
  ): Promise<InspectedArtifact> {
    const request = { wanted: [], expectedDigest, signal: undefined, onProgress: (progress: InspectionProgress) => onProgress?.(progress) };
    const fetched = await this.cache.fetchFirst([source, ...fallbackSources], request).catch((error: unknown) => {
      throw asInspectionError(error);
    });
    try {
      const { files } = fetched;
      if (expectedDigest !== null && files.length > 0 && !files.some((file) => file.digest === expectedDigest)) {
        throw new ArtifactInspectionError('digest_mismatch', `None of the ${files.length} files has the pinned ${expectedDigest}. Correct the digest, or leave it out.`);
      }
      const header = await readHeader(files);
      return { source: fetched.source, artifacts: files.map(({ path, bytes, digest }) => ({ path, bytes, digest })), header };
    } catch (error) {
      throw asInspectionError(error);
    } finally {
      for (const file of fetched.files) file.hold?.release();
    }
  }
}

async function readHeader(files: readonly FetchedFile[]): Promise<ArtifactHeader> {
  if (files.length === 0) return NO_HEADER;
  const gguf = files.find((file) => file.path.endsWith('.gguf'));
  if (gguf !== undefined) return named(gguf, readGgufHeader(gguf.absolutePath));
  const weights = files.filter((file) => file.path.endsWith('.safetensors'));
  const [first] = weights;
  if (first !== undefined) return named(first, readSafetensorsHeader(weights.map((file) => file.absolutePath), files.find((file) => file.path === 'config.json')?.absolutePath));
  const onnx = files.find((file) => file.path.endsWith('.onnx'));
  if (onnx !== undefined) return named(onnx, readOnnxHeader(onnx.absolutePath, files.map((file) => file.absolutePath)));
  throw new ArtifactInspectionError('invalid_file', `${files[0]?.path ?? 'The artifact'} is neither a .gguf nor a .safetensors nor an .onnx file. Give the model in one of these formats.`);
}

async function named(file: FetchedFile, header: Promise<ArtifactHeader>): Promise<ArtifactHeader> {
  return header.catch((error: unknown) => {
    if (error instanceof InvalidModelFileError) throw new ArtifactInspectionError('invalid_file', `${file.path} cannot be used: ${error.message}.`, { cause: error });
    throw error;
  });
}

function asInspectionError(error: unknown): ArtifactInspectionError {
  if (error instanceof ArtifactInspectionError) return error;
  if (error instanceof ArtifactPullError && error.code !== 'aborted') return new ArtifactInspectionError(error.code, error.message, { cause: error });
  return new ArtifactInspectionError('pull_failed', `The artifact cannot be read: ${describeFailure(error)}`, { cause: error });
}
