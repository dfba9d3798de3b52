import { stat } from 'node:fs/promises';
import type { TensorDatatype, TensorSpec } from '@penstock/contract-events';
import type { ArtifactHeader } from '@penstock/domain-catalog';
import { InvalidModelFileError } from './file-window.js';
import { readOnnx, type OnnxContents, type OnnxValue } from './onnx-reader.js';

/** `TensorProto.DataType` by number: its name in ONNX, and the protocol's where it has one. */
const ELEMENT_TYPES: Readonly<Record<number, readonly [name: string, datatype: TensorDatatype | null]>> = {
  1: ['FLOAT', 'FP32'], 2: ['UINT8', 'UINT8'], 3: ['INT8', 'INT8'], 4: ['UINT16', 'UINT16'], 5: ['INT16', 'INT16'], 6: ['INT32', 'INT32'], 7: ['INT64', 'INT64'],
  8: ['STRING', 'BYTES'], 9: ['BOOL', 'BOOL'], 10: ['FLOAT16', 'FP16'], 11: ['DOUBLE', 'FP64'], 12: ['UINT32', 'UINT32'], 13: ['UINT64', 'UINT64'], 14: ['COMPLEX64', null],
  15: ['COMPLEX128', null], 16: ['BFLOAT16', 'BF16'], 17: ['FLOAT8E4M3FN', null], 18: ['FLOAT8E4M3FNUZ', null], 19: ['FLOAT8E5M2', null], 20: ['FLOAT8E5M2FNUZ', null], 21: ['UINT4', null], 22: ['INT4', null],
};
/** The largest shape and name that a model version carries. */
const LENGTH_MAX = Number.MAX_SAFE_INTEGER;
const NAME_LENGTH_MAX = 500;

/** `weightPaths` are the model and the files its weights lie in, where they lie beside it. Throws {@link InvalidModelFileError}. */
export async function readOnnxHeader(path: string, weightPaths: readonly string[] = [path]): Promise<ArtifactHeader> {
  const contents = await readOnnx(path);
  const sizes = await Promise.all(weightPaths.map(async (file) => (await stat(file)).size));
  const weights = new Set(contents.weights.map(({ name }) => name));
  return {
    format: 'onnx',
    architecture: contents.graphName === '' ? null : contents.graphName.slice(0, 100),
    parameters: Math.min(contents.weights.reduce((sum, { elements }) => sum + elements, 0), Number.MAX_SAFE_INTEGER),
    precision: precisionOf(contents),
    layers: null,
    contextTokensMax: null,
    kvBytesPerToken: 0,
    weightBytes: sizes.reduce((sum, size) => sum + size, 0),
    license: contents.license?.toLowerCase().slice(0, 200) ?? null,
    randomWeights: false,
    // Before version 4 of the format every weight was an input too.
    tensors: { inputs: contents.inputs.filter(({ name }) => !weights.has(name)).map(toSpec), outputs: contents.outputs.map(toSpec) },
  };
}

/** The type that most of the weights have. */
function precisionOf({ weights }: OnnxContents): string | null {
  const elements = new Map<number, number>();
  for (const weight of weights) elements.set(weight.elementType, (elements.get(weight.elementType) ?? 0) + weight.elements);
  const [first] = [...elements].sort((a, b) => b[1] - a[1]);
  return first === undefined ? null : (ELEMENT_TYPES[first[0]]?.[0] ?? null);
}

function toSpec({ name, elementType, shape }: OnnxValue): TensorSpec {
  if (name === '' || name.length > NAME_LENGTH_MAX) throw new InvalidModelFileError('one of its inputs or outputs has no usable name');
  const datatype = elementType === null ? undefined : ELEMENT_TYPES[elementType]?.[1];
  if (datatype === undefined || datatype === null) throw new InvalidModelFileError(`its value ${name.slice(0, 100)} has a type that the Open Inference Protocol cannot carry`);
  if (shape === null) throw new InvalidModelFileError(`its value ${name.slice(0, 100)} has no shape; export the model with shapes, open lengths included`);
  return { name, datatype, shape: shape.map((length) => (length === null || length > LENGTH_MAX ? -1 : length)) };
}
