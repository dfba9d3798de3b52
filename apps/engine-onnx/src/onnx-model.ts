import type { TensorDatatype, TensorSpec } from '@penstock/contract-events';
import { isByteStrings, valuesOfBytes, type ModelTensors, type Tensor } from '@penstock/domain-serving';
import type { OnnxData, OnnxRuntime, OnnxSession, OnnxTensor, OnnxValueMetadata } from './onnx-runtime.js';

/** Names of element types in the runtime and in the protocol. */
const DATATYPES: readonly (readonly [type: string, datatype: TensorDatatype])[] = [
  ['bool', 'BOOL'], ['uint8', 'UINT8'], ['uint16', 'UINT16'], ['uint32', 'UINT32'], ['uint64', 'UINT64'], ['int8', 'INT8'], ['int16', 'INT16'], ['int32', 'INT32'],
  ['int64', 'INT64'], ['float16', 'FP16'], ['float32', 'FP32'], ['float64', 'FP64'], ['string', 'BYTES'],
];
const typeByDatatype = new Map(DATATYPES.map(([type, datatype]) => [datatype, type]));
const datatypeByType = new Map<string, TensorDatatype>(DATATYPES);
const ERRORS_ONLY = 3;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The input cannot be given to the runtime, or the runtime refused it. */
export class InferenceError extends Error {
  override readonly name = 'InferenceError';
  constructor(readonly isCallersFault: boolean, message: string) {
    super(message);
  }
}

/** One ONNX file, loaded. */
export class OnnxModel {
  private constructor(private readonly runtime: OnnxRuntime, private readonly session: OnnxSession, readonly tensors: ModelTensors) {}

  /** Throws for a file that does not load or has values that the protocol cannot carry. */
  static async load(runtime: OnnxRuntime, path: string, threads: number): Promise<OnnxModel> {
    const session = await runtime.InferenceSession.create(path, { intraOpNumThreads: threads, interOpNumThreads: 1, executionProviders: ['cpu'], logSeverityLevel: ERRORS_ONLY });
    return new OnnxModel(runtime, session, { inputs: session.inputMetadata.map(toSpec), outputs: session.outputMetadata.map(toSpec) });
  }

  /** Runs once and gives the named outputs in this order. The inputs were checked against {@link tensors}. Throws {@link InferenceError}. */
  async run(inputs: readonly Tensor[], outputs: readonly string[]): Promise<readonly Tensor[]> {
    const feeds = Object.fromEntries(inputs.map((input) => [input.name, this.toFeed(input)]));
    let found: Readonly<Record<string, OnnxTensor>>;
    try {
      found = await this.session.run(feeds, outputs);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new InferenceError(/invalid dimensions|unexpected input|is missing in/i.test(message), message);
    }
    return outputs.map((name) => fromResult(name, found[name]));
  }

  close(): Promise<void> {
    return this.session.release();
  }

  private toFeed({ name, datatype, shape, values }: Tensor): OnnxTensor {
    const type = typeByDatatype.get(datatype);
    if (type === undefined) throw new InferenceError(true, `The input '${name}' is ${datatype}, which this engine does not take.`);
    if (!isByteStrings(values)) return new this.runtime.Tensor(type, values, shape);
    try {
      return new this.runtime.Tensor(type, values.map((element) => strictUtf8.decode(element)), shape);
    } catch {
      throw new InferenceError(true, `The input '${name}' has bytes that are not UTF-8, which models of this engine do not take.`);
    }
  }
}

function fromResult(name: string, tensor: OnnxTensor | undefined): Tensor {
  const datatype = tensor === undefined ? undefined : datatypeByType.get(tensor.type);
  if (tensor === undefined || datatype === undefined) throw new InferenceError(false, `The output '${name}' has no type that the protocol can carry.`);
  return { name, datatype, shape: tensor.dims, values: isStrings(tensor.data) ? tensor.data.map((text) => encoder.encode(text)) : valuesOfBytes(datatype, new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength)) };
}

function isStrings(data: OnnxData): data is readonly string[] {
  return Array.isArray(data);
}

function toSpec({ name, isTensor, type, shape }: OnnxValueMetadata): TensorSpec {
  const datatype = isTensor ? datatypeByType.get(type ?? '') : undefined;
  if (datatype === undefined || shape === undefined) throw new Error(`the model's value '${name}' is ${isTensor ? (type ?? 'of an unknown type') : 'no tensor'}, which this engine does not serve`);
  return { name, datatype, shape: shape.map((length) => (typeof length === 'number' && length >= 0 ? length : -1)) };
}
