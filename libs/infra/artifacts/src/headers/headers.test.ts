import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { gguf } from '@huggingface/gguf';
import fc from 'fast-check';
import { writeRandomModel } from '../models/random-model.js';
import { InvalidModelFileError } from './file-window.js';
import { readGgufHeader } from './gguf-header.js';
import { readSafetensorsHeader } from './safetensors-header.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-headers-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('GGUF', () => {
  test('the random model is read as what it is, and as another reader reads it', async () => {
    const path = join(folder, 'random.gguf');
    await writeRandomModel(path);
    const header = await readGgufHeader(path);
    expect(header).toMatchObject({
      format: 'gguf', architecture: 'llama', precision: 'F32', layers: 2, contextTokensMax: 4_096, kvBytesPerToken: 2 * 4 * 32 * 2, license: 'cc0-1.0', randomWeights: true,
    });
    const other = await gguf(path, { allowLocalFile: true, computeParametersCount: true });
    expect(header.parameters).toBe(other.parameterCount);
  });

  test('the random model has the same bytes every time', async () => {
    await writeRandomModel(join(folder, 'a.gguf'));
    await writeRandomModel(join(folder, 'b.gguf'));
    expect((await readFile(join(folder, 'a.gguf'))).equals(await readFile(join(folder, 'b.gguf')))).toBe(true);
  });

  test('a file that is cut anywhere, or hostile, is refused and never crashes the reader', async () => {
    const path = join(folder, 'random.gguf');
    await writeRandomModel(path);
    const whole = await readFile(path);
    const damaged = join(folder, 'damaged.gguf');
    await fc.assert(fc.asyncProperty(fc.integer({ min: 0, max: 20_000 }), async (length) => {
      await writeFile(damaged, whole.subarray(0, length));
      await expect(readGgufHeader(damaged)).rejects.toBeInstanceOf(InvalidModelFileError);
    }), { numRuns: 40 });
    await fc.assert(fc.asyncProperty(fc.integer({ min: 8, max: 6_000 }), fc.integer({ min: 0, max: 255 }), async (at, byte) => {
      const changed = Buffer.from(whole);
      changed[at] = byte;
      await writeFile(damaged, changed);
      const outcome = await readGgufHeader(damaged).then(() => 'read', (error: unknown) => (error instanceof InvalidModelFileError ? 'refused' : String(error)));
      expect(['read', 'refused']).toContain(outcome);
    }), { numRuns: 60 });
  });
});

describe('safetensors', () => {
  function safetensors(header: unknown, data: number): Buffer {
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([length, text, Buffer.alloc(data)]);
  }

  test('weights and config give size, precision, layers and cache per token', async () => {
    await writeFile(join(folder, 'a.safetensors'), safetensors({ __metadata__: { format: 'pt' }, w: { dtype: 'BF16', shape: [4, 8], data_offsets: [0, 64] } }, 64));
    await writeFile(join(folder, 'b.safetensors'), safetensors({ v: { dtype: 'F32', shape: [3], data_offsets: [0, 12] } }, 12));
    await writeFile(join(folder, 'config.json'), JSON.stringify({ model_type: 'llama', num_hidden_layers: 30, hidden_size: 576, num_attention_heads: 9, num_key_value_heads: 3, max_position_embeddings: 8_192 }));
    expect(await readSafetensorsHeader([join(folder, 'a.safetensors'), join(folder, 'b.safetensors')], join(folder, 'config.json'))).toEqual({
      format: 'safetensors', architecture: 'llama', parameters: 35, precision: 'BF16', layers: 30, contextTokensMax: 8_192,
      kvBytesPerToken: 30 * 3 * 64 * 2 * 2, weightBytes: 76, license: null, randomWeights: false,
    });
  });

  test.each([
    ['a header longer than the file', Buffer.from([255, 255, 255, 255, 0, 0, 0, 0, 1])],
    ['tensors beyond the end', safetensors({ w: { dtype: 'F32', shape: [4], data_offsets: [0, 16] } }, 8)],
    ['a header that is not an object', safetensors([1], 0)],
    ['nothing', Buffer.alloc(0)],
  ])('%s is refused', async (_name, bytes) => {
    await writeFile(join(folder, 'x.safetensors'), bytes);
    await expect(readSafetensorsHeader([join(folder, 'x.safetensors')], undefined)).rejects.toBeInstanceOf(InvalidModelFileError);
  });
});
