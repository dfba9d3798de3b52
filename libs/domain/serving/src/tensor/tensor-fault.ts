import type { EngineFault } from '../engine-dialect.js';
import { busyFault, failedFault, readErrorParts, rejectedFault } from '../engine-fault.js';

/** What Triton answers with status 500 although the request is at fault. */
const CLIENT_FAULT_PATTERNS = [/^failed to parse the request JSON/i, /^Unable to parse/i, /^attempt to access/i, /^Must specify/i, /^JSON/i, /^Expected .* to be/i, /invalid datatype/i, /^Unable to get/i];
/** The replica, and not the request, is at fault. */
const REPLICA_FAULT_PATTERNS = [/is not healthy/i, /unknown model/i, /has no available versions/i, /not ready/i, /shutting down|unloading/i];
/** The model's own code raised an error for this input: another replica would do the same. */
const MODEL_FAULT_PATTERN = /^(?:Failed to process the request\(s\)|in ensemble|onnx runtime error)/i;
const REQUEST_ID_PREFIX = /^\[request id: [^\]]*\] /;

const modelFault: EngineFault = { code: 'inference_failed', message: 'The model failed on this input. Check its values; the owner of the model finds the reason in the log of its replica.', param: null, retryElsewhere: false };

/** Reads an error answer of a tensor engine, whatever its content type says. */
export function readTensorFault(status: number, text: string): EngineFault {
  const parts = readErrorParts(parsed(text)) ?? { message: '', type: '', param: null, code: undefined };
  const message = parts.message.replace(REQUEST_ID_PREFIX, '');
  if (status === 503 || status === 429) return busyFault;
  if (REPLICA_FAULT_PATTERNS.some((pattern) => pattern.test(message))) return failedFault;
  if (MODEL_FAULT_PATTERN.test(message)) return modelFault;
  // The path of the request is ours, so what is wrong with it is no fault of the caller.
  if (status === 401 || status === 403 || status === 404 || status === 405) return failedFault;
  if (status < 500 || CLIENT_FAULT_PATTERNS.some((pattern) => pattern.test(message))) return rejectedFault({ ...parts, message });
  return message === '' ? failedFault : modelFault;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
