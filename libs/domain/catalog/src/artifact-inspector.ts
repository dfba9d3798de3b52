import type { ArtifactSource, TensorSpec } from '@penstock/contract-events';

/** What the header of the weights says. Null where it says nothing. */
export interface ArtifactHeader {
  readonly format: 'gguf' | 'safetensors' | 'none' | 'onnx';
  readonly architecture: string | null;
  readonly parameters: number | null;
  /** Such as `Q4_1` or `BF16`; `MIXED` never: the type of most of the bytes counts. */
  readonly precision: string | null;
  readonly layers: number | null;
  readonly contextTokensMax: number | null;
  /** Bytes of key-value cache for one token of context, at two bytes a value. */
  readonly kvBytesPerToken: number | null;
  readonly weightBytes: number;
  /** SPDX-like, lower case, as the file has it. */
  readonly license: string | null;
  /** True when the file says of itself that its weights are random. */
  readonly randomWeights: boolean;
  /** What a model of tensors takes and gives; left out by formats of text. */
  readonly tensors?: { readonly inputs: readonly TensorSpec[]; readonly outputs: readonly TensorSpec[] } | undefined;
}

export interface InspectedArtifact {
  /** The source that the bytes were really read from. */
  readonly source: ArtifactSource;
  readonly artifacts: readonly { readonly path: string; readonly bytes: number; readonly digest: string }[];
  readonly header: ArtifactHeader;
}

export interface InspectionProgress {
  readonly file: string;
  readonly completedBytes: number;
  readonly totalBytes: number | null;
}

/** Reads the artifacts of a model version: pulls them into the cache, computes digests, reads the header. */
export interface ArtifactInspector {
  /**
   * Tries `source`, then each of `fallbackSources`. `expectedDigest` (`sha256:…`) is what the main file must have.
   * Sources of kind `attached` and `none` have no artifacts and a header of format `none`.
   * Throws {@link ArtifactInspectionError}.
   */
  inspect(
    source: ArtifactSource,
    fallbackSources: readonly ArtifactSource[],
    expectedDigest: string | null,
    onProgress?: (progress: InspectionProgress) => void,
  ): Promise<InspectedArtifact>;
}

export type ArtifactInspectionCode = 'pull_failed' | 'digest_mismatch' | 'no_disk_space' | 'invalid_file';

/** The artifacts could not be had or are not what they should be. The message says what and what to do next. */
export class ArtifactInspectionError extends Error {
  override readonly name = 'ArtifactInspectionError';
  constructor(readonly code: ArtifactInspectionCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
