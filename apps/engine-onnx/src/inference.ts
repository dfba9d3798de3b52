import { checkInfer, decodeInfer, encodeInfer, readInfer } from '@penstock/domain-serving';
import type { OnnxMetrics } from './onnx-metrics.js';
import { InferenceError, type OnnxModel } from './onnx-model.js';
import { QueueFullError, type WorkQueue } from './work-queue.js';

export interface InferenceReply {
  readonly status: number;
  readonly head: string;
  readonly binary: readonly Uint8Array[];
}

export interface InferenceParts {
  readonly model: OnnxModel;
  readonly identity: { readonly name: string; readonly version: string };
  readonly queue: WorkQueue;
  readonly metrics: OnnxMetrics;
}

/** One request of `POST …/infer`, from its bytes to the bytes of its answer. What the caller did wrong has a status from 400 to 499, and only that. */
export async function infer(body: Uint8Array, headLength: string | undefined, parts: InferenceParts): Promise<InferenceReply> {
  const { model, metrics, queue, identity } = parts;
  const refuse = (status: number, outcome: string, message: string): InferenceReply => {
    metrics.requests.inc({ outcome });
    return errorReply(status, message);
  };
  const read = readInfer(body, headLength);
  if (read.kind === 'fault') return refuse(400, 'invalid', read.fault.message);
  const check = checkInfer(read.body, model.tensors);
  if (check.kind === 'fault') return refuse(400, 'invalid', check.fault.message);
  const { request } = read.body;
  if (request.outputs?.some((output) => output.parameters?.['classification'] !== undefined) === true) return refuse(400, 'invalid', 'This engine does not classify: leave the parameter classification out.');
  const decoded = decodeInfer(read.body);
  if (decoded.kind === 'fault') return refuse(400, 'invalid', decoded.fault.message);
  const wanted = request.outputs === undefined || request.outputs.length === 0 ? model.tensors.outputs.map(({ name }) => name) : request.outputs.map(({ name }) => name);
  try {
    const outputs = await queue.run(async () => {
      const stop = metrics.seconds.startTimer();
      try {
        return await model.run(decoded.inputs, wanted);
      } finally {
        stop();
      }
    });
    const encoded = encodeInfer(request, identity, outputs);
    if (encoded.kind === 'fault') return refuse(400, 'invalid', encoded.fault.message);
    metrics.requests.inc({ outcome: 'completed' });
    return { status: 200, head: encoded.head, binary: encoded.binary };
  } catch (error) {
    if (error instanceof QueueFullError) return refuse(503, 'refused', 'Exceeds maximum queue size');
    if (!(error instanceof InferenceError)) throw error;
    return error.isCallersFault ? refuse(400, 'invalid', error.message) : refuse(500, 'failed', `onnx runtime error: ${error.message}`);
  }
}

export function errorReply(status: number, message: string): InferenceReply {
  return { status, head: JSON.stringify({ error: message }), binary: [] };
}
