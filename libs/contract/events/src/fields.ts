import { z } from 'zod';

/** An id that may stand in a subject: letters, digits, `_` and `-`. */
export const id = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);

/** Whole bytes. */
export const bytes = z.int().nonnegative();

/** Whole tokens. */
export const tokens = z.int().nonnegative();

/** Milliseconds, possibly with a fraction. */
export const milliseconds = z.number().nonnegative();

/** ISO 8601 in UTC. */
export const instant = z.iso.datetime();

/** `sha256:` and 64 lower-case hexadecimal digits. */
export const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

/** What a customer calls a model by: as in Hugging Face names, so slashes and dots are allowed. */
export const modelName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/);

/** What an adapter is called beside the others of its endpoint; a model's name may end with it behind a colon, so it holds none itself. */
export const adapterName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/);

/** `triton` and `onnx` serve tensors by the Open Inference Protocol, the others text. */
export const engineKind = z.enum(['llama.cpp', 'vllm', 'engine-sim', 'triton', 'onnx']);
export type EngineKind = z.infer<typeof engineKind>;

/** The engines that take and give tensors, and no text. */
export type TensorEngineKind = 'triton' | 'onnx';

export function isTensorEngine(engine: EngineKind): engine is TensorEngineKind {
  return engine === 'triton' || engine === 'onnx';
}
