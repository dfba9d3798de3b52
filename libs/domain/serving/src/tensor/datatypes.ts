import type { TensorDatatype } from '@penstock/contract-events';

/** Bytes of one element; null for `BYTES`, whose elements carry their own length. */
const ELEMENT_BYTES: Readonly<Record<TensorDatatype, number | null>> = {
  BOOL: 1, UINT8: 1, UINT16: 2, UINT32: 4, UINT64: 8, INT8: 1, INT16: 2, INT32: 4, INT64: 8, FP16: 2, FP32: 4, FP64: 8, BF16: 2, BYTES: null,
};

export function elementBytesOf(datatype: TensorDatatype): number | null {
  return ELEMENT_BYTES[datatype];
}

/** Elements of a tensor of this shape; a scalar has one. `Infinity` for a product beyond what a number can hold exactly. */
export function elementCountOf(shape: readonly number[]): number {
  const count = shape.reduce((product, length) => product * length, 1);
  return Number.isSafeInteger(count) ? count : Infinity;
}

/** Smallest and largest whole number of a datatype that JSON numbers carry exactly; undefined for the others. */
export function integerRangeOf(datatype: TensorDatatype): readonly [number, number] | undefined {
  switch (datatype) {
    case 'UINT8': return [0, 0xff];
    case 'UINT16': return [0, 0xffff];
    case 'UINT32': return [0, 0xffff_ffff];
    case 'INT8': return [-0x80, 0x7f];
    case 'INT16': return [-0x8000, 0x7fff];
    case 'INT32': return [-0x8000_0000, 0x7fff_ffff];
    default: return undefined;
  }
}
