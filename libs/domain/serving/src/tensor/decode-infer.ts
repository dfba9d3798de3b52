import type { TensorDatatype } from '@penstock/contract-events';
import type { ApiFault, InferRequest } from '@penstock/contract-http';
import { elementCountOf } from './datatypes.js';
import type { InferBody } from './infer-body.js';
import { emptyValues, valuesOfBytes, type Tensor, type TensorValues } from './tensor-values.js';

export type DecodeInfer = { readonly kind: 'decoded'; readonly inputs: readonly Tensor[] } | { readonly kind: 'fault'; readonly fault: ApiFault };

const encoder = new TextEncoder();
const WHOLE_NUMBER = /^-?\d+$/;

/** The inputs of a request that `checkInfer` took, as values. Whole numbers of 64 bits keep every digit. */
export function decodeInfer({ request, text, binary }: InferBody): DecodeInfer {
  const exact = request.inputs.some((input) => input.datatype.endsWith('INT64') && input.data !== undefined) ? exactData(text) : undefined;
  const inputs: Tensor[] = [];
  let offset = 0;
  for (const [index, { name, datatype, shape, data, parameters }] of request.inputs.entries()) {
    const size = parameters?.['binary_data_size'];
    if (typeof size === 'number') {
      inputs.push({ name, datatype, shape, values: valuesOfBytes(datatype, binary.subarray(offset, offset + size)) });
      offset += size;
      continue;
    }
    const values = valuesOfJson(datatype, elementCountOf(shape), (datatype.endsWith('INT64') ? exact?.inputs[index]?.data : undefined) ?? data ?? []);
    if (values === undefined) return { kind: 'fault', fault: { code: 'invalid_value', message: `'inputs[${index}].data' holds a number that ${datatype} cannot hold.`, param: `inputs[${index}].data` } };
    inputs.push({ name, datatype, shape, values });
  }
  return { kind: 'decoded', inputs };
}

/** Parses again, with numbers beyond 2^53 as they stand in the text. */
function exactData(text: string): InferRequest {
  const revive = (_key: string, value: unknown, context?: { readonly source?: string }): unknown => {
    const source = context?.source;
    return typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && WHOLE_NUMBER.test(source) ? BigInt(source) : value;
  };
  return JSON.parse(text, revive) as InferRequest;
}

/** Undefined when a value does not fit 64 bits. */
function valuesOfJson(datatype: TensorDatatype, count: number, data: readonly unknown[]): TensorValues | undefined {
  const flat = data.flat(Infinity) as readonly (string | number | bigint | boolean)[];
  if (datatype === 'BYTES') return flat.map((value) => encoder.encode(String(value)));
  const values = emptyValues(datatype, count);
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    for (const [index, value] of flat.entries()) {
      const whole = BigInt(value);
      values[index] = whole;
      if (values[index] !== whole) return undefined;
    }
    return values;
  }
  for (const [index, value] of flat.entries()) values[index] = Number(value);
  return values;
}
