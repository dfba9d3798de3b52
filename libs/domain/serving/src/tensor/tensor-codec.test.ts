import { describe, expect, test } from '@jest/globals';
import type { TensorDatatype } from '@penstock/contract-events';
import fc from 'fast-check';
import { checkInfer } from './check-infer.js';
import { elementBytesOf, elementCountOf } from './datatypes.js';
import { decodeInfer } from './decode-infer.js';
import { encodeInfer } from './encode-infer.js';
import { normaliseInfer } from './infer-answer.js';
import { readInfer, type InferBody } from './infer-body.js';
import { quoteNonFinite } from './non-finite.js';
import { bytesOfValues, valuesOfBytes, type Tensor } from './tensor-values.js';
import { zeroInfer } from './zero-infer.js';

const encoder = new TextEncoder();

function read(head: unknown, binary: Uint8Array = new Uint8Array()): InferBody {
  const text = typeof head === 'string' ? head : JSON.stringify(head);
  const bytes = Buffer.concat([encoder.encode(text), binary]);
  const outcome = readInfer(bytes, binary.length === 0 ? undefined : String(encoder.encode(text).length));
  if (outcome.kind === 'fault') throw new Error(outcome.fault.message);
  return outcome.body;
}

function decode(body: InferBody): readonly Tensor[] {
  expect(checkInfer(body, null)).toMatchObject({ kind: 'fits' });
  const decoded = decodeInfer(body);
  if (decoded.kind === 'fault') throw new Error(decoded.fault.message);
  return decoded.inputs;
}

const faultOf = (body: InferBody) => {
  const check = checkInfer(body, null);
  return check.kind === 'fault' ? check.fault : undefined;
};
const input = (datatype: TensorDatatype, data: unknown, shape: readonly number[] = [Array.isArray(data) ? data.length : 0]) => ({ inputs: [{ name: 'x', datatype, shape, data }] });

describe('values', () => {
  test('whole numbers of 64 bits keep every digit, in and out', () => {
    const text = '{"inputs":[{"name":"x","datatype":"INT64","shape":[3],"data":[9007199254740993,-9223372036854775808,[7]]}]}';
    const [tensor] = decode(read(text));
    expect(tensor?.values).toEqual(BigInt64Array.of(9007199254740993n, -9223372036854775808n, 7n));
    const encoded = encodeInfer(read(text).request, { name: 'm', version: '1' }, tensor === undefined ? [] : [tensor]);
    expect(encoded).toMatchObject({ head: '{"model_name":"m","model_version":"1","outputs":[{"name":"x","datatype":"INT64","shape":[3],"data":[9007199254740993,-9223372036854775808,7]}]}' });
  });

  test('a number that 64 bits cannot hold is refused', () => {
    const body = read('{"inputs":[{"name":"x","datatype":"INT64","shape":[1],"data":[9223372036854775808]}]}');
    expect(decodeInfer(body)).toMatchObject({ kind: 'fault', fault: { code: 'invalid_value', param: 'inputs[0].data' } });
  });

  test('nested data is flat in row-major order', () => {
    expect(decode(read(input('FP32', [[1, 2], [3, 4]], [2, 2])))[0]?.values).toEqual(Float32Array.of(1, 2, 3, 4));
  });

  test.each<[TensorDatatype, unknown[]]>([
    ['UINT8', [256]], ['UINT8', [-1]], ['INT8', [128]], ['INT32', [2 ** 31]], ['UINT64', [-1]], ['INT16', [1.5]], ['FP32', ['1']], ['FP64', [null]], ['BOOL', [2]], ['BYTES', [1]], ['FP16', [1]], ['BF16', [1]], ['FP32', [{}]],
  ])('%s does not take %j', (datatype, data) => {
    expect(faultOf(read(input(datatype, data)))).toMatchObject({ param: 'inputs[0].data' });
  });

  test('every datatype survives binary and back', () => {
    const datatypes: readonly TensorDatatype[] = ['BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64', 'FP16', 'FP32', 'FP64', 'BF16'];
    fc.assert(fc.property(fc.constantFrom(...datatypes), fc.uint8Array({ maxLength: 64 }), (datatype, seed) => {
      const size = elementBytesOf(datatype) ?? 1;
      const bytes = seed.subarray(0, seed.length - (seed.length % size));
      expect(Buffer.from(bytesOfValues(valuesOfBytes(datatype, bytes)))).toEqual(Buffer.from(bytes));
    }));
  });

  test('byte strings survive binary and back, and only whole ones are taken', () => {
    fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 6 }), fc.integer({ min: 1, max: 3 }), (elements, cut) => {
      const bytes = bytesOfValues(elements);
      const headOf = (size: number) => ({ inputs: [{ name: 'x', datatype: 'BYTES', shape: [elements.length], parameters: { binary_data_size: size } }] });
      if (bytes.length === 0) return;
      expect(decode(read(headOf(bytes.length), bytes))[0]?.values).toEqual(elements.map((element) => Uint8Array.from(element)));
      const short = bytes.subarray(0, bytes.length - cut);
      if (short.length > 0) expect(faultOf(read(headOf(short.length), short))).toMatchObject({ code: 'invalid_value' });
    }));
  });
});

describe('a request', () => {
  test('with binary tensors has to be as long as it says', () => {
    const headOf = (size: number) => ({ inputs: [{ name: 'x', datatype: 'FP32', shape: [2], parameters: { binary_data_size: size } }] });
    expect(faultOf(read(headOf(8), new Uint8Array(8)))).toBeUndefined();
    for (const [size, bytes] of [[8, 7], [8, 9], [4, 8], [4, 4], [12, 12]] as const) expect(faultOf(read(headOf(size), new Uint8Array(bytes)))).toMatchObject({ code: 'invalid_value' });
    expect(faultOf(read({ inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1], parameters: { binary_data_size: 4 } }] }, new Uint8Array(4)))).toMatchObject({ code: 'invalid_value' });
  });

  test('names no tensor twice, and a shape beyond all memory fits nothing', () => {
    const one = { name: 'x', datatype: 'FP32', shape: [1], data: [1] };
    expect(faultOf(read({ inputs: [one, one] }))).toMatchObject({ param: 'inputs' });
    expect(faultOf(read({ inputs: [{ ...one, shape: [2 ** 40, 2 ** 40] }] }))).toMatchObject({ code: 'invalid_value' });
    expect(elementCountOf([])).toBe(1);
    expect(faultOf(read(input('FP32', [], [0, 5])))).toBeUndefined();
  });

  test('never makes the check throw, whatever it holds', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), fc.option(fc.string({ maxLength: 5 }), { nil: undefined }), (bytes, headLength) => {
      expect(['read', 'fault']).toContain(readInfer(bytes, headLength).kind);
    }));
    const value = fc.letrec((tie) => ({ any: fc.oneof({ depthSize: 'small' }, fc.jsonValue(), fc.array(tie('any'), { maxLength: 3 })) })).any;
    fc.assert(fc.property(fc.constantFrom<TensorDatatype>('FP32', 'BYTES', 'INT64', 'BOOL'), fc.array(fc.nat(3), { maxLength: 3 }), fc.array(value, { maxLength: 4 }), (datatype, shape, data) => {
      const outcome = readInfer(encoder.encode(JSON.stringify({ inputs: [{ name: 'x', datatype, shape, data }] })), undefined);
      if (outcome.kind === 'read' && checkInfer(outcome.body, null).kind === 'fits') expect(decodeInfer(outcome.body).kind).toBe('decoded');
    }));
  });
});

describe('an answer', () => {
  test('quotes what is no JSON number, and nothing inside of text', () => {
    expect(quoteNonFinite('{"NaN":[NaN,-Infinity,Infinity,"a \\" NaN",1]}')).toBe('{"NaN":["NaN","-Infinity","Infinity","a \\" NaN",1]}');
    fc.assert(fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify({ value, word: 'NaN "Infinity' });
      expect(quoteNonFinite(text)).toBe(text);
    }));
  });

  test('has values that are no JSON number as strings, and binary where it is asked for', () => {
    const outputs: Tensor[] = [{ name: 'a', datatype: 'FP32', shape: [4], values: Float32Array.of(NaN, -Infinity, -0, 0.1) }, { name: 'b', datatype: 'FP16', shape: [1], values: Uint16Array.of(0x3c00) }, { name: 'c', datatype: 'BYTES', shape: [1], values: [Uint8Array.of(0xff)] }];
    const model = { name: 'm', version: '1' };
    const request = { id: 'i', inputs: [], outputs: [{ name: 'b', parameters: { binary_data: true } }, { name: 'c', parameters: { binary_data: true } }] };
    const encoded = encodeInfer(request, model, outputs);
    if (encoded.kind !== 'encoded') throw new Error(encoded.fault.message);
    expect(encoded.head).toContain('"data":["NaN","-Infinity",-0.0,0.10000000149011612]');
    const bytes = Buffer.concat([encoder.encode(encoded.head), ...encoded.binary]);
    expect(normaliseInfer(bytes, String(encoder.encode(encoded.head).length), model)).toMatchObject({ kind: 'answer', elements: 6 });
    expect(encodeInfer({ inputs: [] }, model, outputs)).toMatchObject({ kind: 'fault', fault: { code: 'unsupported_value' } });
    expect(encodeInfer({ inputs: [], parameters: { binary_data_output: true } }, model, outputs)).toMatchObject({ kind: 'encoded' });
  });

  test('that is cut short is refused', () => {
    const head = '{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}';
    for (const [length, size] of [[head.length, 7], [head.length, 9], [head.length - 1, 8], [head.length + 100, 8], [NaN, 8]] as const) {
      expect(normaliseInfer(Buffer.concat([encoder.encode(head), new Uint8Array(size)]), String(length), { name: 'p', version: '2' })).toMatchObject({ kind: 'fault', fault: { code: 'engine_response_invalid' } });
    }
  });
});

test('an inference on zeros fits the tensors it was made for', () => {
  const inputs = [{ name: 'x', datatype: 'FP32' as const, shape: [-1, 8] }, { name: 't', datatype: 'BYTES' as const, shape: [-1, 2] }, { name: 's', datatype: 'BOOL' as const, shape: [] }];
  const message = zeroInfer(inputs);
  if (message === undefined) throw new Error('no message');
  expect(checkInfer(read(message.head, message.binary), { inputs, outputs: [] })).toEqual({ kind: 'fits', elements: 11 });
  expect(zeroInfer([{ name: 'x', datatype: 'FP64', shape: [2 ** 20, 2 ** 20] }])).toBeUndefined();
});
