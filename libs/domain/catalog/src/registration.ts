import { isTensorEngine, type ArtifactSource, type ModelVersionRegisteredV1, type ModelVersionSubmittedV1, type ModelVersionTensorsReadV1 } from '@penstock/contract-events';
import type { InspectedArtifact } from './artifact-inspector.js';
import { overheadBytesOf } from './memory-estimate.js';

/** Used where neither the header nor the owner says how long a context may be. */
export const CONTEXT_TOKENS_ASSUMED = 4_096;

/** Keys and values of one token at a common small shape (16 layers, 4 heads of 64, two bytes), where no header tells. */
export const KV_BYTES_PER_TOKEN_ASSUMED = 16_384;

/** True for an engine that runs elsewhere or needs no weights. */
export function hasNothingToPull(source: ArtifactSource): boolean {
  return source.kind === 'attached' || source.kind === 'none';
}

/** What is registered of a model version without artifacts: the declared figures, and no memory on our nodes but the engine's own. */
export function declaredRegistration(submitted: ModelVersionSubmittedV1): ModelVersionRegisteredV1 {
  return {
    modelVersionId: submitted.modelVersionId,
    artifacts: [],
    source: submitted.source,
    format: 'none',
    architecture: null,
    parameters: null,
    precision: null,
    layers: null,
    contextTokensMax: submitted.declared?.contextTokensMax ?? CONTEXT_TOKENS_ASSUMED,
    memory: { weightBytes: 0, kvBytesPerToken: 0, overheadBytes: submitted.source.kind === 'attached' ? 0 : overheadBytesOf(submitted.engine, 0), basis: 'declared' },
    capabilities: capabilitiesOf(submitted),
    license: submitted.license ?? null,
    randomWeights: false,
  };
}

/** What is registered of a model version whose artifacts were read. The owner's word fills what the header leaves open. */
export function inspectedRegistration(submitted: ModelVersionSubmittedV1, inspected: InspectedArtifact): ModelVersionRegisteredV1 {
  const { header } = inspected;
  const isKnown = header.format !== 'none' && header.kvBytesPerToken !== null;
  return {
    modelVersionId: submitted.modelVersionId,
    artifacts: inspected.artifacts.map(({ path, bytes, digest }) => ({ path, bytes, digest })),
    source: inspected.source,
    format: header.format,
    architecture: header.architecture,
    parameters: header.parameters,
    precision: header.precision,
    layers: header.layers,
    contextTokensMax: header.contextTokensMax ?? submitted.declared?.contextTokensMax ?? CONTEXT_TOKENS_ASSUMED,
    memory: {
      weightBytes: header.weightBytes,
      kvBytesPerToken: header.kvBytesPerToken ?? KV_BYTES_PER_TOKEN_ASSUMED,
      overheadBytes: overheadBytesOf(submitted.engine, header.weightBytes),
      basis: isKnown ? 'header' : 'assumed',
    },
    capabilities: capabilitiesOf(submitted),
    license: submitted.license ?? header.license,
    randomWeights: header.randomWeights,
  };
}

/** What the header says of the tensors; undefined where it says nothing. */
export function inspectedTensors(submitted: ModelVersionSubmittedV1, { header }: InspectedArtifact): ModelVersionTensorsReadV1 | undefined {
  if (header.tensors === undefined) return undefined;
  return { modelVersionId: submitted.modelVersionId, inputs: [...header.tensors.inputs], outputs: [...header.tensors.outputs] };
}

/** Why the engine cannot serve weights of this format; undefined when it can. */
export function formatMismatch({ engine }: ModelVersionSubmittedV1, { header }: InspectedArtifact): string | undefined {
  if (isTensorEngine(engine)) return header.format === 'onnx' ? undefined : `The engine ${engine} serves ONNX models, and the artifact is ${header.format}. Give an .onnx file, or choose another engine.`;
  return header.format === 'onnx' ? `The engine ${engine} does not serve ONNX models. Choose the engine onnx or triton.` : undefined;
}

function capabilitiesOf(submitted: ModelVersionSubmittedV1): ModelVersionRegisteredV1['capabilities'] {
  // A model of tensors answers no chat, whatever was said of it.
  if (isTensorEngine(submitted.engine)) return ['infer'];
  return submitted.declared?.capabilities ?? ['chat', 'completions'];
}
