import type { TensorDatatype } from '@penstock/contract-events';

/** Values in row-major order. `FP16` and `BF16` are their bits, `BOOL` is 0 and 1, `BYTES` is one array for each element. */
export type TensorValues =
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array
  | readonly Uint8Array[];

export interface Tensor {
  readonly name: string;
  readonly datatype: TensorDatatype;
  readonly shape: readonly number[];
  readonly values: TensorValues;
}

type Numbers = Exclude<TensorValues, readonly Uint8Array[]>;

const LENGTH_BYTES = 4;

/** Values of a binary tensor, little-endian as the protocol has it; the processors this runs on are too. The bytes were checked. */
export function valuesOfBytes(datatype: TensorDatatype, bytes: Uint8Array): TensorValues {
  if (datatype === 'BYTES') return byteStrings(bytes);
  // A copy is aligned; a part of a request's body need not be.
  const { buffer } = Uint8Array.from(bytes);
  return viewOf(datatype, buffer);
}

/** Room for `count` elements. */
export function emptyValues(datatype: Exclude<TensorDatatype, 'BYTES'>, count: number): Numbers {
  return viewOf(datatype, new ArrayBuffer(count * BYTES_OF[datatype]));
}

/** The bytes of a tensor as the protocol sends them. */
export function bytesOfValues(values: TensorValues): Uint8Array {
  if (!isByteStrings(values)) return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const total = values.reduce((sum, element) => sum + LENGTH_BYTES + element.length, 0);
  const bytes = new Uint8Array(total);
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const element of values) {
    view.setUint32(offset, element.length, true);
    bytes.set(element, offset + LENGTH_BYTES);
    offset += LENGTH_BYTES + element.length;
  }
  return bytes;
}

export function isByteStrings(values: TensorValues): values is readonly Uint8Array[] {
  return Array.isArray(values);
}

const BYTES_OF: Readonly<Record<Exclude<TensorDatatype, 'BYTES'>, number>> = {
  BOOL: 1, UINT8: 1, UINT16: 2, UINT32: 4, UINT64: 8, INT8: 1, INT16: 2, INT32: 4, INT64: 8, FP16: 2, FP32: 4, FP64: 8, BF16: 2,
};

function viewOf(datatype: Exclude<TensorDatatype, 'BYTES'>, buffer: ArrayBuffer): Numbers {
  switch (datatype) {
    case 'BOOL':
    case 'UINT8': return new Uint8Array(buffer);
    case 'FP16':
    case 'BF16':
    case 'UINT16': return new Uint16Array(buffer);
    case 'UINT32': return new Uint32Array(buffer);
    case 'UINT64': return new BigUint64Array(buffer);
    case 'INT8': return new Int8Array(buffer);
    case 'INT16': return new Int16Array(buffer);
    case 'INT32': return new Int32Array(buffer);
    case 'INT64': return new BigInt64Array(buffer);
    case 'FP32': return new Float32Array(buffer);
    case 'FP64': return new Float64Array(buffer);
  }
}

function byteStrings(bytes: Uint8Array): readonly Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: Uint8Array[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const length = view.getUint32(offset, true);
    elements.push(bytes.slice(offset + LENGTH_BYTES, offset + LENGTH_BYTES + length));
    offset += LENGTH_BYTES + length;
  }
  return elements;
}
