import { inferResponse } from '@penstock/contract-http';
import { editJson } from '../edit-json.js';
import type { EngineFault } from '../engine-dialect.js';
import { JSON_DEPTH_MAX, outlineJson } from '../json-outline.js';
import { elementCountOf } from './datatypes.js';
import { quoteNonFinite } from './non-finite.js';

export type NormalisedInfer =
  | { readonly kind: 'answer'; readonly head: Uint8Array; readonly binary: Uint8Array; /** Elements of all outputs together. */ readonly elements: number }
  | { readonly kind: 'fault'; readonly fault: EngineFault };

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });
const encoder = new TextEncoder();

/**
 * Makes an engine's answer fit to be sent: names the model as callers know it, quotes what is no JSON number, and refuses what is broken.
 * Everything else stays byte for byte, so that 64-bit integers keep their digits. `headLength` as in {@link readInfer}.
 */
export function normaliseInfer(bytes: Uint8Array, headLength: string | undefined, model: { readonly name: string; readonly version: string }): NormalisedInfer {
  const length = headLength === undefined ? bytes.length : Number(headLength);
  if (!Number.isInteger(length) || length < 1 || length > bytes.length) return broken('The answer of the model is not complete. Try again.');
  const binary = bytes.subarray(length);
  let text: string;
  try {
    text = quoteNonFinite(strictUtf8.decode(bytes.subarray(0, length)));
  } catch {
    return broken('The model answered with bytes that are not UTF-8, which JSON cannot carry. Ask for its outputs in binary: parameters.binary_data_output, or binary_data of an output.', false);
  }
  const value = parsed(text);
  const head = inferResponse.safeParse(value);
  const outline = outlineJson(text, JSON_DEPTH_MAX, Number.MAX_SAFE_INTEGER);
  if (!head.success || outline.kind !== 'outline') return broken('The model answered with something that is no inference. Try again.');
  const announced = head.data.outputs.reduce((sum, output) => sum + sizeOf(output.parameters?.['binary_data_size']), 0);
  if (announced !== binary.length) return broken('The binary tensors of the answer are not complete. Try again.');
  const edited = editJson(text, outline.members, { set: { model_name: model.name, model_version: model.version }, remove: new Set() });
  return { kind: 'answer', head: encoder.encode(edited), binary, elements: head.data.outputs.reduce((sum, output) => sum + elementCountOf(output.shape), 0) };
}

function sizeOf(size: unknown): number {
  return typeof size === 'number' && size > 0 ? size : 0;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function broken(message: string, retryElsewhere = true): NormalisedInfer {
  return { kind: 'fault', fault: { code: 'engine_response_invalid', message, param: null, retryElsewhere } };
}
