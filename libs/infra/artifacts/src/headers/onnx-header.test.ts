import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { classifierOnnx, identityOnnx, writeOnnx } from '@penstock/testing-kit';
import fc from 'fast-check';
import { chooseModelFiles } from '../sources/choose-model-files.js';
import { InvalidModelFileError } from './file-window.js';
import { readOnnxHeader } from './onnx-header.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-onnx-header-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function headerOf(bytes: Uint8Array) {
  const path = join(folder, 'model.onnx');
  await writeFile(path, bytes);
  return readOnnxHeader(path);
}

describe('ONNX', () => {
  test('a model says what it takes and gives, and how large it is', async () => {
    const bytes = classifierOnnx();
    expect(await headerOf(bytes)).toEqual({
      format: 'onnx', architecture: 'classifier', parameters: 27, precision: 'FLOAT', layers: null, contextTokensMax: null, kvBytesPerToken: 0, weightBytes: bytes.length, license: null, randomWeights: false,
      tensors: { inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 8] }], outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, 3] }, { name: 'probs', datatype: 'FP32', shape: [-1, 3] }] },
    });
    expect((await headerOf(identityOnnx(7))).tensors?.inputs).toEqual([{ name: 'x', datatype: 'INT64', shape: [-1] }]);
  });

  test('weights that old models list as inputs are no inputs', async () => {
    const value = (name: string) => ({ name, type: 1, shape: [2] });
    const header = await headerOf(writeOnnx({ name: 'old', inputs: [value('x'), value('w')], outputs: [value('y')], nodes: [{ operator: 'Add', inputs: ['x', 'w'], outputs: ['y'] }], weights: [{ name: 'w', shape: [2], values: [1, 2] }] }));
    expect(header.tensors?.inputs.map(({ name }) => name)).toEqual(['x']);
  });

  test('a type that the protocol cannot carry is said to be so', async () => {
    await expect(headerOf(identityOnnx(14))).rejects.toThrow('cannot carry');
  });

  test('a file that is cut anywhere, or hostile, is refused or read, and never crashes the reader', async () => {
    const whole = classifierOnnx();
    for (let length = 0; length < whole.length; length += 7) await headerOf(whole.subarray(0, length)).catch((error: unknown) => expect(error).toBeInstanceOf(InvalidModelFileError));
    await fc.assert(fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 }), async (index, byte) => {
      const damaged = Uint8Array.from(whole);
      damaged[index] = byte;
      await headerOf(damaged).catch((error: unknown) => expect(error).toBeInstanceOf(InvalidModelFileError));
    }), { numRuns: 150 });
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
      await expect(headerOf(bytes)).rejects.toBeInstanceOf(InvalidModelFileError);
    }), { numRuns: 50 });
  });
});

test('of a folder, the one ONNX file is taken with the weights beside it', () => {
  expect(chooseModelFiles(['model.onnx', 'model.onnx_data', 'README.md'])).toEqual(['model.onnx', 'model.onnx_data']);
  expect(() => chooseModelFiles(['a.onnx', 'b.onnx'])).toThrow('2 ONNX files');
  expect(chooseModelFiles(['model.safetensors', 'model.onnx'])).toEqual(['model.safetensors']);
});
