import { open, type FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import { InvalidModelFileError } from '../headers/file-window.js';

const LENGTH_BYTES = 8;
const HEADER_BYTES_MAX = 10_000_000;

const tensorInfo = z.looseObject({ dtype: z.string(), shape: z.array(z.int().positive()), data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]) });

export interface SafetensorsTensor {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** Weights of one safetensors file, tensor by tensor. */
export class SafetensorsFile {
  private constructor(private readonly file: FileHandle, private readonly tensors: ReadonlyMap<string, z.infer<typeof tensorInfo>>, private readonly dataStart: number) {}

  /** Throws {@link InvalidModelFileError}. */
  static async open(path: string): Promise<SafetensorsFile> {
    const file = await open(path, 'r');
    try {
      const length = Number((await file.read(Buffer.alloc(LENGTH_BYTES), 0, LENGTH_BYTES, 0)).buffer.readBigUInt64LE());
      if (length > HEADER_BYTES_MAX) throw new InvalidModelFileError('it is not a safetensors file');
      const header = z.record(z.string(), z.unknown()).parse(JSON.parse((await file.read(Buffer.alloc(length), 0, length, LENGTH_BYTES)).buffer.toString('utf8')));
      const tensors = Object.entries(header).filter(([name]) => name !== '__metadata__').map(([name, info]) => [name, tensorInfo.parse(info)] as const);
      return new SafetensorsFile(file, new Map(tensors), LENGTH_BYTES + length);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** A tensor of 32-bit floats. Throws {@link InvalidModelFileError} when there is none of that name. */
  async read(name: string): Promise<SafetensorsTensor> {
    const info = this.tensors.get(name);
    if (info?.dtype !== 'F32') throw new InvalidModelFileError(`it has no 32-bit tensor ${name}`);
    const [start, end] = info.data_offsets;
    const bytes = new Uint8Array(end - start);
    const { bytesRead } = await this.file.read(bytes, 0, bytes.length, this.dataStart + start);
    if (bytesRead !== bytes.length) throw new InvalidModelFileError('it is cut short');
    return { shape: info.shape, values: new Float32Array(bytes.buffer) };
  }

  close(): Promise<void> {
    return this.file.close();
  }
}
