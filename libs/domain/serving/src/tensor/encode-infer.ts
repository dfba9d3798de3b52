import type { ApiFault, InferRequest } from '@penstock/contract-http';
import { bytesOfValues, isByteStrings, type Tensor } from './tensor-values.js';

export type EncodedInfer =
  | { readonly kind: 'encoded'; readonly head: string; /** Empty where every output is in the head. */ readonly binary: readonly Uint8Array[] }
  | { readonly kind: 'fault'; readonly fault: ApiFault };

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The answer to `request` with these outputs, each in JSON or in binary as it was asked for. */
export function encodeInfer(request: InferRequest, model: { readonly name: string; readonly version: string }, outputs: readonly Tensor[]): EncodedInfer {
  const parts: string[] = [];
  const binary: Uint8Array[] = [];
  for (const output of outputs) {
    const common = `"name":${JSON.stringify(output.name)},"datatype":"${output.datatype}","shape":[${output.shape.join(',')}]`;
    if (wantsBinary(request, output.name)) {
      const bytes = bytesOfValues(output.values);
      binary.push(bytes);
      parts.push(`{${common},"parameters":{"binary_data_size":${bytes.length}}}`);
      continue;
    }
    const data = dataOf(output);
    if (data === undefined) {
      return { kind: 'fault', fault: { code: 'unsupported_value', message: `The output '${output.name}' has values that JSON cannot carry. Ask for it in binary: parameters {"binary_data": true} of the output.`, param: 'outputs' } };
    }
    parts.push(`{${common},"data":${data}}`);
  }
  const id = request.id === undefined ? '' : `"id":${JSON.stringify(request.id)},`;
  return { kind: 'encoded', head: `{${id}"model_name":${JSON.stringify(model.name)},"model_version":${JSON.stringify(model.version)},"outputs":[${parts.join(',')}]}`, binary };
}

function wantsBinary(request: InferRequest, name: string): boolean {
  const own = request.outputs?.find((output) => output.name === name)?.parameters?.['binary_data'];
  return typeof own === 'boolean' ? own : request.parameters?.['binary_data_output'] === true;
}

/** JSON text of the values; undefined where JSON has none for them. */
function dataOf({ datatype, values }: Tensor): string | undefined {
  if (isByteStrings(values)) {
    try {
      return JSON.stringify(values.map((element) => strictUtf8.decode(element)));
    } catch {
      return undefined;
    }
  }
  if (datatype === 'FP16' || datatype === 'BF16') return undefined;
  const list: readonly (number | bigint)[] = [...values];
  if (datatype === 'BOOL') return `[${list.map((value) => (Number(value) === 0 ? 'false' : 'true')).join(',')}]`;
  if (datatype === 'FP32' || datatype === 'FP64') return `[${list.map((value) => floatText(Number(value))).join(',')}]`;
  return `[${list.join(',')}]`;
}

/** As the JSON form of protocol buffers writes what is no JSON number. */
function floatText(value: number): string {
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0.0' : String(value);
  return `"${value}"`;
}
