import { open } from 'node:fs/promises';
import { FileWindow, InvalidModelFileError } from './file-window.js';

/** Nodes, weights and values of one graph together; the largest published models have some tens of thousands. */
const FIELDS_MAX = 1_000_000;
const STRING_BYTES_MAX = 65_536;
const DIMENSIONS_MAX = 32;
const VARINT_BYTES_MAX = 10;

/** Wire types of protocol buffers. */
const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED_32 = 5;

/** A value of a graph: number of its element type, and lengths with null where they are open. */
export interface OnnxValue {
  readonly name: string;
  /** Null for what is no tensor. */
  readonly elementType: number | null;
  readonly shape: readonly (number | null)[] | null;
}

export interface OnnxWeights {
  readonly name: string;
  readonly elementType: number;
  readonly elements: number;
}

export interface OnnxContents {
  readonly irVersion: number;
  readonly producer: string;
  readonly graphName: string;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly weights: readonly OnnxWeights[];
  readonly nodes: number;
  /** What its metadata says of the licence. */
  readonly license: string | undefined;
}

type GraphContents = Omit<OnnxContents, 'irVersion' | 'producer' | 'license'>;

/** Reads what an ONNX file says of itself and passes over its weights, with limits on everything. Field numbers are those of `onnx.proto`. Throws {@link InvalidModelFileError}. */
export async function readOnnx(path: string): Promise<OnnxContents> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    return await new OnnxReader(new FileWindow(file, size), size).model();
  } finally {
    await file.close();
  }
}

interface Field {
  readonly number: number;
  readonly wire: number;
  /** The value of a varint, the length of what is delimited, 0 for the fixed ones. */
  readonly value: number;
}

class OnnxReader {
  private fields = 0;

  constructor(private readonly window: FileWindow, private readonly size: number) {}

  async model(): Promise<OnnxContents> {
    let [irVersion, producer] = [0, ''];
    let graph: GraphContents | undefined;
    let license: string | undefined;
    await this.message(this.size, async ({ number, value }) => {
      if (number === 1) irVersion = value;
      else if (number === 2) producer = await this.text(value);
      else if (number === 7) graph = await this.graph(value);
      else if (number === 14) license = (await this.licenseOf(value)) ?? license;
      else return false;
      return true;
    });
    if (graph === undefined || irVersion === 0) throw new InvalidModelFileError('it is not an ONNX model: it has no graph');
    return { irVersion, producer, license, ...graph };
  }

  private async graph(length: number): Promise<GraphContents> {
    const [inputs, outputs, weights]: [OnnxValue[], OnnxValue[], OnnxWeights[]] = [[], [], []];
    let [graphName, nodes] = ['', 0];
    await this.message(length, async ({ number, value }) => {
      if (number === 1) nodes += 1;
      if (number === 2) graphName = await this.text(value);
      else if (number === 5) weights.push(await this.tensor(value));
      else if (number === 11) inputs.push(await this.value(value));
      else if (number === 12) outputs.push(await this.value(value));
      else return false;
      return true;
    });
    return { graphName, nodes, inputs, outputs, weights };
  }

  private async tensor(length: number): Promise<OnnxWeights> {
    let [name, elementType, elements] = ['', 0, 1];
    await this.message(length, async ({ number, wire, value }) => {
      if (number === 1 && wire === VARINT) elements *= value;
      else if (number === 1) elements *= await this.packedProduct(value);
      else if (number === 2) elementType = value;
      else if (number === 8) name = await this.text(value);
      else return false;
      return true;
    });
    return { name, elementType, elements };
  }

  private async packedProduct(length: number): Promise<number> {
    const end = this.window.offset + length;
    let product = 1;
    while (this.window.offset < end) product *= await this.varint();
    return product;
  }

  private async value(length: number): Promise<OnnxValue> {
    let found: OnnxValue = { name: '', elementType: null, shape: null };
    await this.message(length, async ({ number, value }) => {
      if (number === 1) found = { ...found, name: await this.text(value) };
      else if (number === 2) found = { ...found, ...(await this.type(value)) };
      else return false;
      return true;
    });
    return found;
  }

  /** `TypeProto`, whose field 1 is a tensor; sequences, maps and optionals are passed over. */
  private async type(length: number): Promise<Pick<OnnxValue, 'elementType' | 'shape'>> {
    let [elementType, shape]: [number | null, (number | null)[] | null] = [null, null];
    await this.message(length, async (field) => {
      if (field.number !== 1) return false;
      await this.message(field.value, async ({ number, value }) => {
        if (number === 1) elementType = value;
        else if (number === 2) shape = await this.shape(value);
        else return false;
        return true;
      });
      return true;
    });
    return { elementType, shape };
  }

  private async shape(length: number): Promise<(number | null)[]> {
    const lengths: (number | null)[] = [];
    await this.message(length, async (field) => {
      if (field.number !== 1) return false;
      let dimension: number | null = null;
      await this.message(field.value, async ({ number, value }) => {
        if (number !== 1) return false;
        dimension = value;
        return true;
      });
      lengths.push(dimension);
      if (lengths.length > DIMENSIONS_MAX) throw new InvalidModelFileError(`a value claims more than ${DIMENSIONS_MAX} dimensions`);
      return true;
    });
    return lengths;
  }

  /** One pair of the metadata, whose key is to be `license`. */
  private async licenseOf(length: number): Promise<string | undefined> {
    let [key, text] = ['', ''];
    await this.message(length, async ({ number, value }) => {
      if (number === 1) key = await this.text(value);
      else if (number === 2 && value <= STRING_BYTES_MAX) text = await this.text(value);
      else return false;
      return true;
    });
    return key.toLowerCase() === 'license' ? text : undefined;
  }

  /** Visits the fields of one message; `visit` says whether it read what the field holds, which is passed over otherwise. */
  private async message(length: number, visit: (field: Field) => Promise<boolean>): Promise<void> {
    const end = this.window.offset + length;
    if (end > this.size) throw new InvalidModelFileError('a message of it reaches beyond the end of the file');
    while (this.window.offset < end) {
      this.fields += 1;
      if (this.fields > FIELDS_MAX) throw new InvalidModelFileError(`it has more than ${FIELDS_MAX} fields`);
      const field = await this.field();
      const stop = this.window.offset + (field.wire === LENGTH_DELIMITED ? field.value : 0);
      if (stop > end) throw new InvalidModelFileError('it is not an ONNX model: a field reaches beyond its message');
      await visit(field);
      if (this.window.offset > stop) throw new InvalidModelFileError('it is not an ONNX model: a field has another type than it should');
      this.window.skip(stop - this.window.offset);
    }
    if (this.window.offset > end) throw new InvalidModelFileError('it is not an ONNX model: its messages do not end where they should');
  }

  private async field(): Promise<Field> {
    const tag = await this.varint();
    const [number, wire] = [Math.floor(tag / 8), tag % 8];
    if (number === 0) throw new InvalidModelFileError('it is not an ONNX model: it does not read as protocol buffers');
    if (wire === VARINT || wire === LENGTH_DELIMITED) return { number, wire, value: await this.varint() };
    if (wire === FIXED_32 || wire === FIXED_64) {
      this.window.skip(wire === FIXED_32 ? 4 : 8);
      return { number, wire, value: 0 };
    }
    throw new InvalidModelFileError('it is not an ONNX model: it does not read as protocol buffers');
  }

  /** Beyond 2^53 the value is not exact, and no limit here lets it pass. */
  private async varint(): Promise<number> {
    let value = 0;
    for (let index = 0; index < VARINT_BYTES_MAX; index += 1) {
      const [byte = 0] = await this.window.take(1);
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value;
    }
    throw new InvalidModelFileError('it is not an ONNX model: a number in it does not end');
  }

  private async text(length: number): Promise<string> {
    if (length > STRING_BYTES_MAX) throw new InvalidModelFileError(`a name in it is longer than ${STRING_BYTES_MAX} bytes`);
    return (await this.window.take(length)).toString('utf8');
  }
}
