import { inferRequest, type ApiFault, type InferRequest } from '@penstock/contract-http';
import { readJson } from '../read-json.js';
import { faultOfIssues } from '../request-fault.js';

/** Header with the length of the JSON head, in bytes, where binary tensors follow it. */
export const HEAD_LENGTH_HEADER = 'inference-header-content-length';

/** An inference request: its checked head, the text of the head, and the binary tensors that follow. */
export interface InferBody {
  readonly request: InferRequest;
  readonly text: string;
  readonly binary: Uint8Array;
}

export type ReadInfer = { readonly kind: 'read'; readonly body: InferBody } | { readonly kind: 'fault'; readonly fault: ApiFault };

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Takes a body apart and checks the shape of its head. `headLength` is the value of {@link HEAD_LENGTH_HEADER}; undefined where all of the body is JSON. */
export function readInfer(bytes: Uint8Array, headLength: string | undefined): ReadInfer {
  const split = splitBody(bytes, headLength);
  if (split.kind === 'fault') return split;
  const { head, binary } = split;
  let text: string;
  try {
    text = strictUtf8.decode(head);
  } catch {
    return fault('invalid_json', 'The JSON head is not valid UTF-8. Encode it as UTF-8, and send tensors of other bytes in binary.');
  }
  const outcome = readJson(text);
  if (outcome.kind === 'fault') return outcome;
  const parsed = inferRequest.safeParse(outcome.document.value);
  if (!parsed.success) return { kind: 'fault', fault: faultOfIssues(parsed.error.issues, outcome.document.value) };
  return { kind: 'read', body: { request: parsed.data, text, binary } };
}

type SplitBody = { readonly kind: 'split'; readonly head: Uint8Array; readonly binary: Uint8Array } | { readonly kind: 'fault'; readonly fault: ApiFault };

function splitBody(bytes: Uint8Array, headLength: string | undefined): SplitBody {
  if (bytes.length === 0) return fault('invalid_json', 'The request has no body. Send a JSON object with inputs.');
  if (headLength === undefined) return { kind: 'split', head: bytes, binary: bytes.subarray(bytes.length) };
  const length = /^\d{1,15}$/.test(headLength.trim()) ? Number(headLength) : undefined;
  if (length === undefined || length === 0 || length > bytes.length) {
    return fault('invalid_value', `The header Inference-Header-Content-Length must be the length of the JSON head in bytes, from 1 to ${bytes.length} for this body.`, HEAD_LENGTH_HEADER);
  }
  return { kind: 'split', head: bytes.subarray(0, length), binary: bytes.subarray(length) };
}

function fault(code: string, message: string, param?: string): { readonly kind: 'fault'; readonly fault: ApiFault } {
  return { kind: 'fault', fault: { code, message, ...(param === undefined ? {} : { param }) } };
}
