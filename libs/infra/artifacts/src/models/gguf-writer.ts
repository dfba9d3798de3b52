import { toHalfFloats } from './half-floats.js';

const VERSION = 3;
const ALIGNMENT = 32;
const F32 = 0;
const F16 = 1;

/** Builds a GGUF file in memory: for small models only. */
export class GgufWriter {
  private readonly keys: Buffer[] = [];
  private readonly tensors: { readonly name: string; readonly dimensions: readonly number[]; readonly type: number; readonly data: Buffer }[] = [];

  text(key: string, value: string): void {
    this.keys.push(Buffer.concat([string(key), uint32(8), string(value)]));
  }

  flag(key: string, value: boolean): void {
    this.keys.push(Buffer.concat([string(key), uint32(7), Buffer.from([value ? 1 : 0])]));
  }

  uint32(key: string, value: number): void {
    this.keys.push(Buffer.concat([string(key), uint32(4), uint32(value)]));
  }

  float32(key: string, value: number): void {
    this.keys.push(Buffer.concat([string(key), uint32(6), float32(value)]));
  }

  texts(key: string, values: readonly string[]): void {
    this.keys.push(Buffer.concat([string(key), arrayHead(8, values.length), ...values.map(string)]));
  }

  float32s(key: string, values: readonly number[]): void {
    this.keys.push(Buffer.concat([string(key), arrayHead(6, values.length), ...values.map(float32)]));
  }

  int32s(key: string, values: readonly number[]): void {
    this.keys.push(Buffer.concat([string(key), arrayHead(5, values.length), ...values.map(uint32)]));
  }

  /** `dimensions` with the fastest-running one first, as GGUF has them. */
  tensor(name: string, dimensions: readonly number[], values: Float32Array): void {
    this.tensors.push({ name, dimensions, type: F32, data: Buffer.from(values.buffer, values.byteOffset, values.byteLength) });
  }

  /** As {@link tensor}, stored in 16 bits. */
  halfTensor(name: string, dimensions: readonly number[], values: Float32Array): void {
    const halves = toHalfFloats(values);
    this.tensors.push({ name, dimensions, type: F16, data: Buffer.from(halves.buffer, halves.byteOffset, halves.byteLength) });
  }

  bytes(): Buffer {
    const infos: Buffer[] = [];
    const data: Buffer[] = [];
    let offset = 0;
    for (const tensor of this.tensors) {
      infos.push(Buffer.concat([string(tensor.name), uint32(tensor.dimensions.length), ...tensor.dimensions.map(uint64), uint32(tensor.type), uint64(offset)]));
      const padding = Buffer.alloc(paddingAfter(tensor.data.length));
      data.push(tensor.data, padding);
      offset += tensor.data.length + padding.length;
    }
    const head = Buffer.concat([Buffer.from('GGUF'), uint32(VERSION), uint64(this.tensors.length), uint64(this.keys.length), ...this.keys, ...infos]);
    return Buffer.concat([head, Buffer.alloc(paddingAfter(head.length)), ...data]);
  }
}

function paddingAfter(length: number): number {
  return (ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT;
}

function arrayHead(type: number, length: number): Buffer {
  return Buffer.concat([uint32(9), uint32(type), uint64(length)]);
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value);
  return buffer;
}

function uint64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}

function float32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeFloatLE(value);
  return buffer;
}
