import { kvBytesPerToken, type AcceleratorShape, type Layout, type ModelShape } from './model-shape.js';

const GIB = 2 ** 30;
/** vLLM's `--gpu-memory-utilization`. */
export const MEMORY_SHARE = 0.9;
/** CUDA context, graphs and activations. Fitted, with the next, on the cache sizes that seven real vLLM engines reported. */
const FIXED_BYTES = 0.8 * GIB;
/** For each entry of the vocabulary: three 32-bit copies of the logits of 256 sequences. */
const BYTES_PER_VOCABULARY_ENTRY = 3 * 4 * 256;

/** Tokens that the key-value cache of an engine holds, over all its accelerators; 0 when the weights leave no room. */
export function kvTokensThatFit(model: ModelShape, accelerator: Pick<AcceleratorShape, 'memoryBytes'>, layout: Layout, memoryShare: number = MEMORY_SHARE): number {
  const weights = (model.parameters * layout.weightBytes) / layout.tensorParallel;
  const room = memoryShare * accelerator.memoryBytes - weights - FIXED_BYTES - BYTES_PER_VOCABULARY_ENTRY * model.vocabulary;
  return Math.max(0, Math.floor(room / kvBytesPerToken(model, layout)));
}
