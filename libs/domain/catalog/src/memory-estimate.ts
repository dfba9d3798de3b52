import type { EngineKind, ModelVersionRegisteredV1 } from '@penstock/contract-events';

export type ModelMemory = Pick<ModelVersionRegisteredV1['memory'], 'weightBytes' | 'kvBytesPerToken' | 'overheadBytes'>;

const MIB = 1_048_576;

/** vLLM on a GPU: CUDA context, NCCL and activations; measured at about 1.2 GiB on seven real engines. */
export const VLLM_OVERHEAD_BYTES = 1_229 * MIB;

/** vLLM takes this share of the device and no more. */
export const VLLM_MEMORY_SHARE = 0.9;

/** llama.cpp on a CPU: process, compute buffers and tokenizer, which grow with the model. */
const LLAMA_OVERHEAD_BYTES = 64 * MIB;
const LLAMA_OVERHEAD_WEIGHT_SHARE = 0.1;

const ENGINE_SIM_OVERHEAD_BYTES = 64 * MIB;

/** ONNX Runtime in a process of Node: 94 MB measured with a tiny model, and room for activations. */
const ONNX_OVERHEAD_BYTES = 160 * MIB;

/** Triton 2.51: 34 MB for the server and 70 MB for a Python instance with ONNX Runtime measured, and room for activations. */
const TRITON_OVERHEAD_BYTES = 192 * MIB;

/** Bytes an engine needs beside weights and key-value cache. */
export function overheadBytesOf(engine: EngineKind, weightBytes: number): number {
  switch (engine) {
    case 'vllm':
      return VLLM_OVERHEAD_BYTES;
    case 'llama.cpp':
      return LLAMA_OVERHEAD_BYTES + Math.ceil(weightBytes * LLAMA_OVERHEAD_WEIGHT_SHARE);
    case 'engine-sim':
      return ENGINE_SIM_OVERHEAD_BYTES;
    case 'onnx':
      return ONNX_OVERHEAD_BYTES;
    case 'triton':
      return TRITON_OVERHEAD_BYTES;
  }
}

/** Bytes one replica needs: weights, a full context of key-value cache for each slot, and the engine's own. */
export function replicaMemoryBytes(memory: ModelMemory, serving: { readonly slotsPerReplica: number; readonly contextTokens: number }): number {
  return Math.ceil(memory.weightBytes + memory.kvBytesPerToken * serving.contextTokens * serving.slotsPerReplica + memory.overheadBytes);
}

/**
 * Tokens of key-value cache that fit on a group of equal devices, by the law `KV = 0.90 x device - weights / tp - overhead` for each.
 * Not more devices may share a model than it has key-value heads, else the cache is stored more than once.
 */
export function kvTokensThatFit(memory: ModelMemory, device: { readonly totalBytes: number; readonly count: number }): number {
  const perDevice = VLLM_MEMORY_SHARE * device.totalBytes - memory.weightBytes / device.count - memory.overheadBytes;
  return Math.max(0, Math.floor(perDevice / (memory.kvBytesPerToken / device.count)));
}
