import type { ProfilePoint, ReplicaProfile, RequestShape } from './replica-profile.js';

/** Measurements that somebody published of one model on one kind of hardware with requests of one length. */
interface PublishedRow {
  readonly modelIds: readonly string[];
  readonly precision: string;
  readonly gpuType: string;
  readonly tensorParallel: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly source: string;
  /** Concurrency, milliseconds to the first token, milliseconds between tokens; ascending. */
  readonly points: readonly (readonly [number, number, number])[];
}

const AICONFIGURATOR = 'NVIDIA aiconfigurator@095f58a5 (Apache-2.0)';

const ROWS: readonly PublishedRow[] = [
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 128, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 154.2, 18.04], [16, 187.9, 22.18], [32, 250.5, 29.38], [64, 387.7, 46.02], [128, 691.7, 80.26]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 512, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 153.6, 16.48], [16, 189.6, 17.88], [32, 242.2, 21], [64, 385.9, 28.51], [128, 681.8, 42.29]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 154.3, 15.9], [16, 187.4, 17.38], [32, 236.8, 20.06], [64, 380.7, 26.09], [128, 652.3, 37.84]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 4096, completionTokens: 512, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 738.9, 19.14], [16, 893.1, 24.6], [32, 1039.3, 35.75], [64, 2130.5, 61.04], [128, 33494.3, 64.33]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 1024, completionTokens: 128, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 126.1, 11.76], [16, 149.4, 14.35], [32, 182.1, 19.18], [64, 252.4, 29.23], [128, 426.1, 50.49]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 1024, completionTokens: 512, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 126, 10.73], [16, 164.2, 11.85], [32, 199.9, 14.18], [64, 266.9, 18.52], [128, 449.3, 28.54]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 1024, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 129.8, 10.6], [16, 156.3, 11.57], [32, 177.9, 13.69], [64, 243, 17.31], [128, 413.3, 25.63]] },
  { modelIds: ['Qwen/Qwen3-32B'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 4096, completionTokens: 512, source: `${AICONFIGURATOR}, vLLM 0.12.0`, points: [[8, 425.9, 12.3], [16, 513.1, 15.43], [32, 633.5, 22.03], [64, 905.1, 34.9], [128, 1362.6, 61.7]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 121.3, 17.41], [8, 150.2, 18.22], [16, 252.5, 19.74], [32, 272.7, 23.54], [64, 415.1, 28.77]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 8192, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 737.5, 20.62], [8, 962.9, 25.01], [16, 1284.1, 34.63], [32, 6518.3, 52.37], [64, 59175.4, 52.41]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 1024, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 80.5, 11.78], [8, 96.3, 12.11], [16, 121.4, 13.19], [32, 174.8, 16.49], [64, 256.4, 19.51]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 4, promptTokens: 8192, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 453.3, 13.27], [8, 582.9, 15.77], [16, 731.5, 21.06], [32, 1068.7, 32.82], [64, 1744.9, 53.49]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 8, promptTokens: 1024, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 70.4, 9.11], [8, 75.8, 9.36], [16, 93, 11.39], [32, 124.4, 12.64], [64, 184.8, 15.46]] },
  { modelIds: ['meta-llama/Llama-3.1-70B-Instruct', 'meta-llama/Llama-3.3-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 8, promptTokens: 8192, completionTokens: 1024, source: `${AICONFIGURATOR}, vLLM`, points: [[4, 300.8, 10.22], [8, 360.7, 11.59], [16, 482.9, 15.85], [32, 689.2, 21.61], [64, 1150.3, 34.48]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 1, promptTokens: 1024, completionTokens: 128, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 191, 7.94], [16, 144, 9.77], [32, 127.9, 13.19], [64, 176.9, 20.05], [128, 532.7, 31.66]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 1, promptTokens: 1024, completionTokens: 512, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 550, 7.42], [16, 308.4, 8.35], [32, 225.7, 9.88], [64, 229.9, 13.1], [128, 364.3, 19.26]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 1, promptTokens: 2048, completionTokens: 256, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 205.1, 8.39], [16, 282.6, 10.88], [32, 255.9, 14.94], [64, 300.8, 23.57], [128, 605.6, 40.41]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 1, promptTokens: 4096, completionTokens: 512, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 856.9, 9.65], [16, 627.3, 12.4], [32, 635.1, 18.15], [64, 705.7, 30.09]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 128, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 129.4, 5.21], [16, 102.8, 6.65], [32, 105.3, 9.01], [64, 145.9, 13.29], [128, 563.8, 21.14]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 1024, completionTokens: 512, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 367.8, 4.83], [16, 218.7, 5.58], [32, 162.4, 6.65], [64, 180.2, 8.6], [128, 1105.9, 11.75]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 2048, completionTokens: 256, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 254.9, 5.53], [16, 180.7, 6.94], [32, 166.8, 9.66], [64, 180.9, 14.49], [128, 674.3, 23.54]] },
  { modelIds: ['meta-llama/Llama-3.1-8B-Instruct'], precision: 'bf16', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 4096, completionTokens: 512, source: `${AICONFIGURATOR}, TensorRT-LLM 1.0.0rc3`, points: [[8, 587.7, 6], [16, 414.3, 8.1], [32, 350.5, 11.24], [64, 394.1, 17.78], [128, 652.1, 30.59]] },
  { modelIds: ['meta-llama/Llama-3.3-70B-Instruct', 'meta-llama/Llama-3.1-70B-Instruct'], precision: 'fp8', gpuType: 'H100-80GB-SXM', tensorParallel: 2, promptTokens: 5000, completionTokens: 500, source: 'NVIDIA NIM 1.8 benchmark page', points: [[1, 407, 18.6], [5, 547, 21.8], [25, 689, 38.8], [50, 835, 59.7], [100, 7996, 92.9]] },
];

/** Requests whose prompts or answers differ by more than this factor from a published row are another workload. */
const SHAPE_FACTOR_MAX = 1.3;

/**
 * Points of the published row whose requests are most like those of the profile; empty where none is like them. With one
 * request replaced by the next, `concurrency` of them finish in the time that one takes.
 */
export function publishedPoints({ modelVersionId, precision, device, shape }: Pick<ReplicaProfile, 'modelVersionId' | 'precision' | 'device' | 'shape'>, knownAs: string = modelVersionId): readonly ProfilePoint[] {
  if (device.slice !== null) return [];
  const alike = ROWS.filter((row) => row.modelIds.includes(knownAs) && row.precision === precision && row.gpuType === device.gpuType && row.tensorParallel === device.tensorParallel)
    .map((row) => ({ row, distance: distance(row, shape) }))
    .filter(({ distance: far }) => far <= Math.log(SHAPE_FACTOR_MAX))
    .sort((one, other) => one.distance - other.distance);
  const row = alike[0]?.row;
  return (row?.points ?? []).map(([concurrency, ttftMs, itlMs]) => ({
    concurrency, ttftMs, itlMs, requestsPerS: (concurrency * 1_000) / (ttftMs + itlMs * shape.completionTokens), from: 'published' as const, source: row?.source ?? '',
  }));
}

/** The larger of the two factors, as a logarithm. */
function distance(row: PublishedRow, shape: RequestShape): number {
  if (shape.completionTokens === 0) return Number.POSITIVE_INFINITY;
  return Math.max(Math.abs(Math.log(row.promptTokens / shape.promptTokens)), Math.abs(Math.log(row.completionTokens / shape.completionTokens)));
}
