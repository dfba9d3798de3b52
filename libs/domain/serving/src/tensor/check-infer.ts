import type { TensorDatatype, TensorSpec } from '@penstock/contract-events';
import type { ApiFault, InferRequest } from '@penstock/contract-http';
import { elementBytesOf, elementCountOf, integerRangeOf } from './datatypes.js';
import type { InferBody } from './infer-body.js';

/** What a model takes and gives. */
export interface ModelTensors {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

export type CheckInfer = { readonly kind: 'fits'; /** Elements of all inputs together. */ readonly elements: number } | { readonly kind: 'fault'; readonly fault: ApiFault };

type InputTensor = InferRequest['inputs'][number];

/** Parameters that steer the server, or reach into what other tenants share with it. */
const STEERING = new Set(['priority', 'timeout', 'sequence_id', 'sequence_start', 'sequence_end', 'shared_memory_region', 'shared_memory_offset', 'shared_memory_byte_size']);
/** Messages name this many tensors of a model at most. */
const NAMES_SHOWN_MAX = 10;

class Refused extends Error {
  constructor(readonly fault: ApiFault) {
    super(fault.message);
  }
}

/**
 * Checks an inference against itself (shapes, values, binary sizes) and against the model's tensors where they are known. Engines answer
 * many of these faults of a caller as failures of their own, or crash on them, so nothing of the kind may reach one.
 */
export function checkInfer({ request, binary }: InferBody, model: ModelTensors | null): CheckInfer {
  try {
    refuseSteering(request.parameters, 'parameters');
    const elements = checkInputs(request, binary);
    (request.outputs ?? []).forEach((output, index) => refuseSteering(output.parameters, `outputs[${index}].parameters`));
    requireUnique(request.outputs ?? [], 'outputs');
    if (model !== null) checkAgainst(request, model);
    return { kind: 'fits', elements };
  } catch (error) {
    if (error instanceof Refused) return { kind: 'fault', fault: error.fault };
    throw error;
  }
}

function checkInputs(request: InferRequest, binary: Uint8Array): number {
  requireUnique(request.inputs, 'inputs');
  let elements = 0;
  let offset = 0;
  request.inputs.forEach((input, index) => {
    const at = `inputs[${index}]`;
    refuseSteering(input.parameters, `${at}.parameters`);
    const count = elementCountOf(input.shape);
    elements += count;
    const size = input.parameters?.['binary_data_size'];
    if (size === undefined) checkData(input, at, count);
    else offset = checkBinary(input, at, count, binary, offset, size);
  });
  if (offset !== binary.length) refuse('invalid_value', `The inputs announce ${offset} bytes of binary tensors, and ${binary.length} follow the JSON head. Make binary_data_size and the body agree.`, 'inputs');
  return elements;
}

function checkData(input: InputTensor, at: string, count: number): void {
  if (input.data === undefined) refuse('missing_required_parameter', `Missing required parameter: '${at}.data'. Send the values there, or in binary with parameters.binary_data_size.`, `${at}.data`);
  if (input.datatype === 'FP16' || input.datatype === 'BF16') refuse('unsupported_value', `'${at}.data' cannot carry ${input.datatype}: JSON has no such numbers. Send the tensor in binary, with parameters.binary_data_size.`, `${at}.data`);
  const found = countValues(input.data, (value) => {
    if (!isValueOf(input.datatype, value)) refuse('invalid_type', `'${at}.data' holds ${describe(value)}, which is no ${input.datatype}.`, `${at}.data`);
  });
  if (found !== count) refuse('invalid_value', `'${at}.data' holds ${found} values, and the shape [${input.shape.join(',')}] has ${describeCount(count)}.`, `${at}.data`);
}

/** Visits the values of nested arrays. Their nesting is limited where the JSON is read. */
function countValues(data: readonly unknown[], visit: (value: unknown) => void): number {
  let count = 0;
  for (const item of data) {
    if (Array.isArray(item)) {
      count += countValues(item, visit);
    } else {
      visit(item);
      count += 1;
    }
  }
  return count;
}

function isValueOf(datatype: TensorDatatype, value: unknown): boolean {
  if (datatype === 'BYTES') return typeof value === 'string';
  if (datatype === 'BOOL') return typeof value === 'boolean' || value === 0 || value === 1;
  if (typeof value !== 'number' || !Number.isFinite(value)) return false;
  if (datatype === 'FP32' || datatype === 'FP64') return true;
  if (!Number.isInteger(value)) return false;
  if (datatype === 'INT64') return Math.abs(value) <= 2 ** 63;
  if (datatype === 'UINT64') return value >= 0 && value <= 2 ** 64;
  const range = integerRangeOf(datatype);
  return range === undefined || (value >= range[0] && value <= range[1]);
}

function checkBinary(input: InputTensor, at: string, count: number, binary: Uint8Array, offset: number, size: unknown): number {
  const param = `${at}.parameters.binary_data_size`;
  if (input.data !== undefined) refuse('invalid_value', `'${at}' has both data and binary_data_size. Send one of them.`, param);
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0) refuse('invalid_type', `Invalid type for '${param}': expected a whole number of bytes.`, param);
  const end = offset + size;
  if (end > binary.length) refuse('invalid_value', `'${at}' announces ${size} bytes, and ${binary.length - offset} are left of the body.`, param);
  const bytes = elementBytesOf(input.datatype);
  if (bytes === null) {
    const found = countByteStrings(binary.subarray(offset, end));
    if (found !== count) refuse('invalid_value', `The binary tensor of '${at}' ${found === undefined ? 'is not a row of lengths and bytes' : `holds ${found} elements, and its shape has ${describeCount(count)}`}. Each element is its length in 4 bytes, little-endian, and its bytes.`, param);
  } else if (count * bytes !== size) {
    refuse('invalid_value', `'${at}' announces ${size} bytes; ${describeCount(count)} of ${input.datatype} take ${count * bytes}.`, param);
  }
  return end;
}

const LENGTH_BYTES = 4;

/** Elements of a binary `BYTES` tensor; undefined when its lengths do not add up. */
function countByteStrings(bytes: Uint8Array): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let count = 0;
  let offset = 0;
  while (offset < bytes.length) {
    if (offset + LENGTH_BYTES > bytes.length) return undefined;
    offset += LENGTH_BYTES + view.getUint32(offset, true);
    count += 1;
  }
  return offset === bytes.length ? count : undefined;
}

function checkAgainst(request: InferRequest, model: ModelTensors): void {
  const specs = new Map(model.inputs.map((spec) => [spec.name, spec]));
  request.inputs.forEach((input, index) => {
    const at = `inputs[${index}]`;
    const spec = specs.get(input.name);
    if (spec === undefined) refuse('invalid_value', `The model has no input '${shown(input.name)}'; its inputs are ${namesOf(model.inputs)}.`, `${at}.name`);
    if (input.datatype !== spec.datatype) refuse('invalid_value', `The input '${input.name}' is ${spec.datatype}, and ${input.datatype} was sent.`, `${at}.datatype`);
    if (!fitsShape(input.shape, spec.shape)) refuse('invalid_value', `The input '${input.name}' takes the shape [${spec.shape.join(',')}], where -1 is any length, and [${input.shape.join(',')}] was sent.`, `${at}.shape`);
  });
  const sent = new Set(request.inputs.map((input) => input.name));
  const missing = model.inputs.find((spec) => !sent.has(spec.name));
  if (missing !== undefined) refuse('missing_required_parameter', `The input '${missing.name}' is missing; the model's inputs are ${namesOf(model.inputs)}.`, 'inputs');
  const known = new Set(model.outputs.map((spec) => spec.name));
  (request.outputs ?? []).forEach((output, index) => {
    if (!known.has(output.name)) refuse('invalid_value', `The model has no output '${shown(output.name)}'; its outputs are ${namesOf(model.outputs)}.`, `outputs[${index}].name`);
  });
}

function fitsShape(sent: readonly number[], wanted: readonly number[]): boolean {
  return sent.length === wanted.length && wanted.every((length, index) => length === -1 || length === sent[index]);
}

function refuseSteering(parameters: Readonly<Record<string, unknown>> | undefined, at: string): void {
  const name = Object.keys(parameters ?? {}).find((key) => STEERING.has(key) || key.startsWith('triton_'));
  if (name !== undefined) refuse('unsupported_value', `The parameter '${shown(name)}' steers the server and cannot be set here. Leave it out.`, `${at}.${shown(name)}`);
}

function requireUnique(tensors: readonly { readonly name: string }[], at: string): void {
  const seen = new Set<string>();
  for (const { name } of tensors) {
    if (seen.has(name)) refuse('invalid_value', `'${at}' names '${shown(name)}' twice.`, at);
    seen.add(name);
  }
}

function namesOf(specs: readonly TensorSpec[]): string {
  const names = specs.slice(0, NAMES_SHOWN_MAX).map(({ name }) => `'${shown(name)}'`);
  return names.length === 0 ? 'none' : `${names.join(', ')}${specs.length > NAMES_SHOWN_MAX ? ', …' : ''}`;
}

function shown(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name;
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'number') return `the number ${value}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function describeCount(count: number): string {
  return count === Infinity ? 'more elements than can be' : `${count} elements`;
}

function refuse(code: string, message: string, param: string): never {
  throw new Refused({ code, message, param });
}
