import type { ArtifactHeader } from '@penstock/domain-catalog';
import { readGguf, type GgufContents } from './gguf-reader.js';

/** Names of GGML tensor types by number. */
const GGML_TYPES: Readonly<Record<number, string>> = {
  0: 'F32', 1: 'F16', 2: 'Q4_0', 3: 'Q4_1', 6: 'Q5_0', 7: 'Q5_1', 8: 'Q8_0', 9: 'Q8_1', 10: 'Q2_K', 11: 'Q3_K', 12: 'Q4_K', 13: 'Q5_K', 14: 'Q6_K', 15: 'Q8_K',
  16: 'IQ2_XXS', 17: 'IQ2_XS', 18: 'IQ3_XXS', 19: 'IQ1_S', 20: 'IQ4_NL', 21: 'IQ3_S', 22: 'IQ2_S', 23: 'IQ4_XS', 24: 'I8', 25: 'I16', 26: 'I32', 27: 'I64',
  28: 'F64', 29: 'IQ1_M', 30: 'BF16', 34: 'TQ1_0', 35: 'TQ2_0', 39: 'MXFP4',
};
/** The engine keeps keys and values as 16-bit floats unless told otherwise. */
const CACHE_VALUE_BYTES = 2;
/** The mark that `writeRandomModel` leaves. */
export const RANDOM_WEIGHTS_KEY = 'penstock.random_weights';

/** Throws `InvalidModelFileError`. */
export async function readGgufHeader(path: string): Promise<ArtifactHeader> {
  const contents = await readGguf(path);
  const architecture = textAt(contents, 'general.architecture');
  const layers = numberAt(contents, `${architecture ?? ''}.block_count`);
  return {
    format: 'gguf', architecture, layers,
    parameters: contents.tensors.reduce((sum, tensor) => sum + tensor.elements, 0),
    precision: precisionOf(contents),
    contextTokensMax: numberAt(contents, `${architecture ?? ''}.context_length`),
    kvBytesPerToken: kvBytesPerToken(contents, architecture ?? '', layers),
    weightBytes: contents.dataBytes,
    license: textAt(contents, 'general.license')?.toLowerCase() ?? null,
    randomWeights: contents.metadata.get(RANDOM_WEIGHTS_KEY) === true,
  };
}

function kvBytesPerToken(contents: GgufContents, architecture: string, layers: number | null): number | null {
  const embedding = numberAt(contents, `${architecture}.embedding_length`);
  const heads = numberAt(contents, `${architecture}.attention.head_count`);
  if (layers === null || embedding === null || heads === null || heads === 0) return null;
  const headLength = embedding / heads;
  const keyLength = numberAt(contents, `${architecture}.attention.key_length`) ?? headLength;
  const valueLength = numberAt(contents, `${architecture}.attention.value_length`) ?? headLength;
  const declared = contents.metadata.get(`${architecture}.attention.head_count_kv`);
  // Some architectures have another number of heads in each layer.
  const headsOverLayers = Array.isArray(declared) ? declared.reduce<number>((sum, count) => sum + Number(count), 0) : (typeof declared === 'number' ? declared : heads) * layers;
  return headsOverLayers * (keyLength + valueLength) * CACHE_VALUE_BYTES;
}

/** The type that most of the weights have. */
function precisionOf(contents: GgufContents): string | null {
  const elements = new Map<number, number>();
  for (const tensor of contents.tensors) elements.set(tensor.type, (elements.get(tensor.type) ?? 0) + tensor.elements);
  const [first] = [...elements].sort((a, b) => b[1] - a[1]);
  return first === undefined ? null : (GGML_TYPES[first[0]] ?? `GGML_${first[0]}`);
}

function numberAt(contents: GgufContents, key: string): number | null {
  const value = contents.metadata.get(key);
  return typeof value === 'number' ? value : null;
}

function textAt(contents: GgufContents, key: string): string | null {
  const value = contents.metadata.get(key);
  return typeof value === 'string' ? value : null;
}
