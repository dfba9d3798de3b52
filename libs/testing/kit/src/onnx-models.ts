/** Enough of `onnx.proto` to write small models; field numbers are those of the ONNX specification. */
interface OnnxValue {
  readonly name: string;
  /** Number of the element type: 1 float, 7 int64, 8 string, 10 float16. */
  readonly type: number;
  /** Text is the name of an open length. */
  readonly shape: readonly (number | string)[];
}

interface OnnxGraph {
  readonly name: string;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly nodes: readonly { readonly operator: string; readonly inputs: readonly string[]; readonly outputs: readonly string[] }[];
  readonly weights?: readonly { readonly name: string; readonly shape: readonly number[]; readonly values: readonly number[] }[];
}

const FLOAT = 1;
const IR_VERSION = 8;
const OPSET = 17;

/** `x[n,8]` to `logits[n,3]` and `probs[n,3]`: one layer with fixed weights and a softmax. */
export function classifierOnnx(): Uint8Array {
  const weights = Array.from({ length: 24 }, (_, index) => ((index * 7) % 11) / 10 - 0.5);
  return writeOnnx({
    name: 'classifier',
    inputs: [{ name: 'x', type: FLOAT, shape: ['n', 8] }],
    outputs: [{ name: 'logits', type: FLOAT, shape: ['n', 3] }, { name: 'probs', type: FLOAT, shape: ['n', 3] }],
    nodes: [{ operator: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['logits'] }, { operator: 'Softmax', inputs: ['logits'], outputs: ['probs'] }],
    weights: [{ name: 'w', shape: [8, 3], values: weights }, { name: 'b', shape: [3], values: [0.1, 0.2, 0.3] }],
  });
}

/** The logits that {@link classifierOnnx} gives for one row, by the same arithmetic in double precision. */
export function classifierLogits(row: readonly number[]): readonly number[] {
  return [0.1, 0.2, 0.3].map((bias, column) => row.reduce((sum, value, index) => sum + value * ((((index * 3 + column) * 7) % 11) / 10 - 0.5), bias));
}

/** `x[n]` to `y[n]` of the same type: 7 is int64, 8 is text, 10 is float16. */
export function identityOnnx(type: number): Uint8Array {
  return writeOnnx({ name: 'identity', inputs: [{ name: 'x', type, shape: ['n'] }], outputs: [{ name: 'y', type, shape: ['n'] }], nodes: [{ operator: 'Identity', inputs: ['x'], outputs: ['y'] }] });
}

/** `x[n]` to its logarithm, which is no finite number for 0 and below. */
export function logarithmOnnx(): Uint8Array {
  return writeOnnx({ name: 'logarithm', inputs: [{ name: 'x', type: FLOAT, shape: ['n'] }], outputs: [{ name: 'y', type: FLOAT, shape: ['n'] }], nodes: [{ operator: 'Log', inputs: ['x'], outputs: ['y'] }] });
}

/** `x[n] + z[m]`, where `n` and `m` have to agree: other lengths fit the declared shapes and fail while the model runs. */
export function sumOnnx(): Uint8Array {
  return writeOnnx({
    name: 'sum', inputs: [{ name: 'x', type: FLOAT, shape: ['n'] }, { name: 'z', type: FLOAT, shape: ['m'] }], outputs: [{ name: 'y', type: FLOAT, shape: ['k'] }],
    nodes: [{ operator: 'Add', inputs: ['x', 'z'], outputs: ['y'] }],
  });
}

export function writeOnnx(graph: OnnxGraph): Uint8Array {
  const body = message([
    ...graph.nodes.map((node) => field(1, message([...node.inputs.map((name) => field(1, text(name))), ...node.outputs.map((name) => field(2, text(name))), field(4, text(node.operator))]))),
    field(2, text(graph.name)),
    ...(graph.weights ?? []).map(({ name, shape, values }) => field(5, message([...shape.map((length) => number(1, length)), number(2, FLOAT), field(8, text(name)), field(9, new Uint8Array(Float32Array.from(values).buffer))]))),
    ...graph.inputs.map((value) => field(11, valueInfo(value))),
    ...graph.outputs.map((value) => field(12, valueInfo(value))),
  ]);
  return message([number(1, IR_VERSION), field(2, text('penstock-tests')), field(7, body), field(8, message([number(2, OPSET)]))]);
}

function valueInfo({ name, type, shape }: OnnxValue): Uint8Array {
  const dimensions = shape.map((length) => field(1, typeof length === 'number' ? message([number(1, length)]) : message([field(2, text(length))])));
  return message([field(1, text(name)), field(2, message([field(1, message([number(1, type), field(2, message(dimensions))]))]))]);
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

function field(tag: number, value: Uint8Array): Uint8Array {
  return message([varint(tag * 8 + 2), varint(value.length), value]);
}

function number(tag: number, value: number): Uint8Array {
  return message([varint(tag * 8), varint(value)]);
}

function message(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Uint8Array.from([...bytes, rest]);
}
