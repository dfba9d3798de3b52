import type { GpuType } from '../catalogue/gpu-types.js';
import type { ModelFacts } from '../catalogue/model-facts.js';
import type { MigProfile } from '../mig/mig-geometry.js';
import type { ProfileDevice, ProfilePoint, ReplicaProfile, RequestShape } from './replica-profile.js';

/** Part of a GPU that a replica has: of its multiprocessors and of its memory bandwidth; 1 is all. */
export interface DeviceShare {
  readonly compute: number;
  readonly bandwidth: number;
  /** Usable memory, in MiB, of each accelerator. */
  readonly memoryMib: number;
}

export const wholeGpu = (gpu: GpuType): DeviceShare => ({ compute: 1, bandwidth: 1, memoryMib: gpu.usableMib });

/** A MIG instance has its multiprocessors and, of the bandwidth, the share of its memory slices. */
export function sliceShare(profile: MigProfile, whole: MigProfile): DeviceShare {
  return { compute: profile.multiprocessors / whole.multiprocessors, bandwidth: profile.memorySlices / whole.memorySlices, memoryMib: profile.usableMib };
}

// Constants of the iteration model, fitted on 15 load stages of real vLLM 0.15 engines on H100 (in-sample median errors:
// TTFT 4.7 %, ITL 5.3 %, E2E 4.1 %; with a model left out 7.9 %, 13.6 %, 7.1 %).
const BANDWIDTH_FOR_WEIGHTS = 0.9;
const BANDWIDTH_FOR_KV = 0.527;
const COMPUTE_USED = 0.55;
const ITERATION_MS = 0.3;
const LAYER_MS = 0.0112;
const ALL_REDUCE_MS = 0.015;
const SEQUENCE_MS = 0.0106;
const REQUEST_MS = 8.96;

/** The memory law: an engine uses 0.9 of the device, less its weights and about 1.2 GiB. */
export const ENGINE_MEMORY_SHARE = 0.9;
export const ENGINE_OVERHEAD_MIB = 1_229;

/** Part of the cache that stays unplanned, so that long requests do not push others out. */
export const KV_HEADROOM = 0.13;

const CONCURRENCIES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const MIB = 1_048_576;

/** Seconds of an engine's own start, and GB per second of reading weights; rough, from published cold starts. */
const ENGINE_START_S = 25;
const OBJECT_STORE_GB_PER_S = 0.7;
const NODE_CACHE_GB_PER_S = 4;

const SOURCE = 'iteration model on datasheet values';

/**
 * A profile from the model's files and the GPU's datasheet alone; undefined when the weights do not fit or the precision
 * is not there. Tensor parallelism is for whole GPUs only, since MIG instances have no link to each other.
 */
export function estimateProfile(model: ModelFacts, precision: string, gpu: GpuType, share: DeviceShare, device: ProfileDevice, shape: RequestShape): ReplicaProfile | undefined {
  const allWeights = model.weightBytes[precision];
  if (allWeights === undefined || (device.slice !== null && device.tensorParallel > 1)) return undefined;
  const weightBytes = allWeights / device.tensorParallel;
  const kvBytes = ENGINE_MEMORY_SHARE * share.memoryMib * MIB - weightBytes - ENGINE_OVERHEAD_MIB * MIB;
  const kvTokens = model.kvBytesPerToken === 0 ? 0 : Math.floor((kvBytes * Math.min(device.tensorParallel, model.kvHeads)) / model.kvBytesPerToken);
  const tokensOfOne = shape.promptTokens + shape.completionTokens;
  if (kvBytes <= 0 || (model.kvBytesPerToken > 0 && kvTokens * (1 - KV_HEADROOM) < tokensOfOne)) return undefined;
  const cost = iterationCost(model, precision, gpu, share, device.tensorParallel);
  const most = model.kvBytesPerToken === 0 ? Number.POSITIVE_INFINITY : Math.floor((kvTokens * (1 - KV_HEADROOM)) / tokensOfOne);
  const curve = CONCURRENCIES.filter((concurrency) => concurrency <= most).map((concurrency) => pointAt(cost, shape, concurrency));
  const figure = (value: number): ReplicaProfile['weightBytes'] => ({ value, from: 'estimated', source: SOURCE });
  const load = (gbPerS: number): number => ENGINE_START_S + allWeights / 1e9 / gbPerS;
  return { modelVersionId: model.id, precision, device, shape, weightBytes: figure(weightBytes), kvTokens: figure(kvTokens), curve, startSeconds: { object_store: figure(load(OBJECT_STORE_GB_PER_S)), node_cache: figure(load(NODE_CACHE_GB_PER_S)) } };
}

/** Milliseconds that one iteration of an engine takes, in parts. */
interface IterationCost {
  /** For each iteration, by how many sequences decode: a mixture of experts reads more weights for more sequences. */
  readonly fixedMs: (sequences: number) => number;
  readonly perSequenceMs: number;
  readonly perPromptTokenMs: number;
  /** For each token in the cache of a decoding sequence. */
  readonly perCachedTokenMs: number;
}

function iterationCost(model: ModelFacts, precision: string, gpu: GpuType, share: DeviceShare, tensorParallel: number): IterationCost {
  const bytesPerParam = (model.weightBytes[precision] as number) / model.params;
  const embedding = model.vocabulary * model.hidden;
  const bandwidthPerMs = gpu.bandwidthGbPerS * 1e6 * share.bandwidth;
  const flopsPerMs = tflopsFor(gpu, precision) * 1e9 * share.compute;
  const linkPerMs = (gpu.nvlinkGbPerS > 0 ? gpu.nvlinkGbPerS : gpu.pcieGbPerS) * 1e6;
  const activeShare = model.activeParams / model.params;
  const layersMs = model.layers * LAYER_MS + (tensorParallel > 1 ? 2 * model.layers * ALL_REDUCE_MS : 0);
  const reduceMsPerToken = tensorParallel > 1 ? (2 * model.layers * model.hidden * 2 * 2 * (tensorParallel - 1)) / tensorParallel / linkPerMs / 2 : 0;
  return {
    fixedMs: (sequences) => {
      const touched = activeShare < 1 ? 1 - (1 - activeShare) ** sequences : 1;
      return ((Math.max(0, model.params - embedding) * touched * bytesPerParam) / tensorParallel) / (bandwidthPerMs * BANDWIDTH_FOR_WEIGHTS) + ITERATION_MS + layersMs;
    },
    perSequenceMs: SEQUENCE_MS,
    perPromptTokenMs: (2 * Math.max(model.activeParams - 2 * embedding, model.activeParams / 2)) / (tensorParallel * flopsPerMs * COMPUTE_USED) + reduceMsPerToken,
    perCachedTokenMs: model.kvBytesPerToken / Math.min(tensorParallel, model.kvHeads) / (bandwidthPerMs * BANDWIDTH_FOR_KV),
  };
}

/** Weights below 8 bits are unpacked and multiplied at 16 bits where the GPU has nothing narrower. */
function tflopsFor(gpu: GpuType, precision: string): number {
  if (precision === 'fp8') return gpu.denseTflops.fp8 ?? gpu.denseTflops.bf16;
  return gpu.denseTflops.bf16;
}

/** Steady state: each finished request is replaced by one whose prompt has to be read between the others' tokens. */
function pointAt(cost: IterationCost, shape: RequestShape, concurrency: number): ProfilePoint {
  const promptMs = shape.promptTokens * cost.perPromptTokenMs;
  if (shape.completionTokens === 0) {
    const batchMs = concurrency * promptMs + cost.fixedMs(concurrency);
    return { concurrency, requestsPerS: (concurrency / batchMs) * 1_000, ttftMs: batchMs + REQUEST_MS, itlMs: 0, from: 'estimated', source: SOURCE };
  }
  const context = shape.promptTokens + shape.completionTokens / 2;
  const decodeMs = cost.fixedMs(concurrency) + concurrency * (cost.perSequenceMs + context * cost.perCachedTokenMs);
  const itlMs = decodeMs + (concurrency * promptMs) / shape.completionTokens;
  return { concurrency, requestsPerS: (concurrency / (shape.completionTokens * itlMs)) * 1_000, ttftMs: promptMs + decodeMs + REQUEST_MS, itlMs, from: 'estimated', source: SOURCE };
}
