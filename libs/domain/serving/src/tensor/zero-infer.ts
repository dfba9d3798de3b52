import type { TensorSpec } from '@penstock/contract-events';
import { elementBytesOf, elementCountOf } from './datatypes.js';

/** A probe larger than this would be a load of its own: the lengths that a model leaves open are 1, so only its fixed ones count. */
const PROBE_BYTES_MAX = 64 * 1_024 * 1_024;
const LENGTH_BYTES = 4;

export interface InferMessage {
  readonly head: string;
  readonly binary: Uint8Array;
}

/** An inference on zeros (empty text for `BYTES`) in the declared shapes, answered in binary; undefined for a model whose inputs are too large to probe. */
export function zeroInfer(inputs: readonly TensorSpec[]): InferMessage | undefined {
  const tensors = inputs.map(({ name, datatype, shape }) => {
    const lengths = shape.map((length) => (length === -1 ? 1 : length));
    return { name, datatype, shape: lengths, parameters: { binary_data_size: elementCountOf(lengths) * (elementBytesOf(datatype) ?? LENGTH_BYTES) } };
  });
  const total = tensors.reduce((sum, tensor) => sum + tensor.parameters.binary_data_size, 0);
  if (total > PROBE_BYTES_MAX) return undefined;
  return { head: JSON.stringify({ inputs: tensors, parameters: { binary_data_output: true } }), binary: new Uint8Array(total) };
}
