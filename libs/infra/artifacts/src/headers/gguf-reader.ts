import { open } from 'node:fs/promises';
import { FileWindow, InvalidModelFileError } from './file-window.js';

const MAGIC = 'GGUF';
const VERSIONS = [2, 3];
const KEYS_MAX = 10_000;
const TENSORS_MAX = 100_000;
const STRING_BYTES_MAX = 16 * 1_048_576;
const DIMENSIONS_MAX = 8;
const ARRAY_DEPTH_MAX = 4;
const ARRAY_LENGTH_MAX = 100_000_000;
/** Longer arrays (vocabularies) are passed over. */
const ARRAY_KEPT_MAX = 4_096;
const ALIGNMENT_DEFAULT = 32;

/** Bytes of each fixed-size value type, by its number. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const STRING_TYPE = 8;
const ARRAY_TYPE = 9;

export type GgufValue = number | boolean | string | readonly (number | boolean | string)[];

export interface GgufTensor {
  readonly name: string;
  readonly elements: number;
  /** Number of the GGML type. */
  readonly type: number;
}

export interface GgufContents {
  readonly version: number;
  /** Vocabularies and other long arrays are left out. */
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: readonly GgufTensor[];
  /** Bytes of tensor data in the file. */
  readonly dataBytes: number;
}

/** Reads the header of a GGUF file with limits on everything. Throws {@link InvalidModelFileError}. */
export async function readGguf(path: string): Promise<GgufContents> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return await new GgufReader(new FileWindow(file, size), size).read();
  } finally {
    await file.close();
  }
}

class GgufReader {
  constructor(private readonly window: FileWindow, private readonly size: number) {}

  async read(): Promise<GgufContents> {
    if (this.size < MAGIC.length || (await this.window.take(MAGIC.length)).toString('latin1') !== MAGIC) throw new InvalidModelFileError('it is not a GGUF file');
    const version = (await this.window.take(4)).readUInt32LE();
    if (!VERSIONS.includes(version)) throw new InvalidModelFileError(`GGUF version ${version} is not known; versions 2 and 3 are`);
    const tensorCount = await this.count(TENSORS_MAX, 'tensors');
    const keyCount = await this.count(KEYS_MAX, 'metadata keys');
    const metadata = new Map<string, GgufValue>();
    for (let index = 0; index < keyCount; index += 1) {
      const key = await this.text();
      const type = (await this.window.take(4)).readUInt32LE();
      const value = await this.value(type, 0);
      if (value !== undefined) metadata.set(key, value);
    }
    const tensors: GgufTensor[] = [];
    let lastOffset = 0;
    for (let index = 0; index < tensorCount; index += 1) {
      const { tensor, offset } = await this.tensor();
      tensors.push(tensor);
      lastOffset = Math.max(lastOffset, offset);
    }
    const declared = metadata.get('general.alignment');
    const alignment = typeof declared === 'number' && declared > 0 ? declared : ALIGNMENT_DEFAULT;
    const dataBytes = this.size - Math.ceil(this.window.offset / alignment) * alignment;
    if (tensors.length > 0 && lastOffset >= dataBytes) throw new InvalidModelFileError('the file is cut short: some of its tensors lie beyond its end');
    return { version, metadata, tensors, dataBytes: Math.max(0, dataBytes) };
  }

  private async count(max: number, what: string): Promise<number> {
    const value = Number((await this.window.take(8)).readBigUInt64LE());
    if (value > max) throw new InvalidModelFileError(`it claims ${value} ${what}; at most ${max} are read`);
    return value;
  }

  private async text(): Promise<string> {
    const length = await this.count(STRING_BYTES_MAX, 'bytes in one string');
    return (await this.window.take(length)).toString('utf8');
  }

  private async tensor(): Promise<{ tensor: GgufTensor; offset: number }> {
    const name = await this.text();
    const dimensions = (await this.window.take(4)).readUInt32LE();
    if (dimensions > DIMENSIONS_MAX) throw new InvalidModelFileError(`tensor ${name.slice(0, 100)} claims ${dimensions} dimensions`);
    let elements = 1;
    for (let index = 0; index < dimensions; index += 1) elements *= Number((await this.window.take(8)).readBigUInt64LE());
    const type = (await this.window.take(4)).readUInt32LE();
    const offset = Number((await this.window.take(8)).readBigUInt64LE());
    return { tensor: { name, elements, type }, offset };
  }

  /** Undefined for an array that is passed over. */
  private async value(type: number, depth: number): Promise<GgufValue | undefined> {
    if (type === STRING_TYPE) return this.text();
    if (type === ARRAY_TYPE) return this.array(depth);
    const bytes = VALUE_BYTES[type];
    if (bytes === undefined) throw new InvalidModelFileError(`metadata type ${type} is not known`);
    return fixedValue(type, await this.window.take(bytes));
  }

  private async array(depth: number): Promise<GgufValue | undefined> {
    if (depth >= ARRAY_DEPTH_MAX) throw new InvalidModelFileError('metadata arrays are nested too deep');
    const type = (await this.window.take(4)).readUInt32LE();
    const length = await this.count(ARRAY_LENGTH_MAX, 'array elements');
    const bytes = VALUE_BYTES[type];
    if (bytes !== undefined && length > ARRAY_KEPT_MAX) {
      this.window.skip(bytes * length);
      return undefined;
    }
    const kept: (number | boolean | string)[] = [];
    for (let index = 0; index < length; index += 1) {
      const value = await this.value(type, depth + 1);
      if (length <= ARRAY_KEPT_MAX && value !== undefined && !Array.isArray(value)) kept.push(value as number | boolean | string);
    }
    return length > ARRAY_KEPT_MAX ? undefined : kept;
  }
}

function fixedValue(type: number, bytes: Buffer): number | boolean {
  switch (type) {
    case 0: return bytes.readUInt8();
    case 1: return bytes.readInt8();
    case 2: return bytes.readUInt16LE();
    case 3: return bytes.readInt16LE();
    case 4: return bytes.readUInt32LE();
    case 5: return bytes.readInt32LE();
    case 6: return bytes.readFloatLE();
    case 7: return bytes.readUInt8() !== 0;
    case 10: return Number(bytes.readBigUInt64LE());
    case 11: return Number(bytes.readBigInt64LE());
    default: return bytes.readDoubleLE();
  }
}
