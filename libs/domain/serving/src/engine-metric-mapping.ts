import type { EngineKind } from '@penstock/contract-events';
import type { EngineAdapters, EnginePace, EngineTelemetry } from './engine-probe.js';

/** One sample of Prometheus text. */
export interface MetricSample {
  readonly name: string;
  readonly value: number;
  /** As written between the braces; left out where there are none. */
  readonly labels?: string | undefined;
}

type TelemetryField = Exclude<keyof EngineTelemetry, 'pace' | 'kvTokens' | 'adapters'>;

/**
 * Which metric of an engine carries which figure. Names match exactly; of several names the first one present counts
 * (older versions of an engine had others). Samples of one name are added up over their labels.
 */
export const engineMetricMapping: Readonly<Record<EngineKind, Readonly<Record<TelemetryField, readonly string[]>>>> = {
  vllm: {
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    kvCacheUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    promptTokensTotal: ['vllm:prompt_tokens_total'],
    completionTokensTotal: ['vllm:generation_tokens_total'],
  },
  'engine-sim': {
    running: ['vllm:num_requests_running'],
    waiting: ['vllm:num_requests_waiting'],
    kvCacheUsage: ['vllm:kv_cache_usage_perc'],
    promptTokensTotal: ['vllm:prompt_tokens_total'],
    completionTokensTotal: ['vllm:generation_tokens_total'],
  },
  'llama.cpp': {
    running: ['llamacpp:requests_processing'],
    waiting: ['llamacpp:requests_deferred'],
    kvCacheUsage: [],
    promptTokensTotal: ['llamacpp:prompt_tokens_total'],
    completionTokensTotal: ['llamacpp:tokens_predicted_total'],
  },
  onnx: {
    running: ['onnx_requests_running'],
    waiting: ['onnx_requests_waiting'],
    kvCacheUsage: [],
    promptTokensTotal: [],
    completionTokensTotal: [],
  },
  triton: {
    // Triton counts what waits and what is done; of what runs, only the leases of routers tell.
    running: [],
    waiting: ['nv_inference_pending_request_count'],
    kvCacheUsage: [],
    promptTokensTotal: [],
    completionTokensTotal: [],
  },
};

/**
 * Histograms of vLLM, which the simulated engine has too: of the time to the first token and between tokens, both in seconds. Versions
 * before 0.12 had the second under another name. Other engines do not count both, or not the requests that they are of.
 */
const FIRST_TOKEN = ['vllm:time_to_first_token_seconds'];
const TOKEN_GAP = ['vllm:inter_token_latency_seconds', 'vllm:time_per_output_token_seconds'];
const CACHE_CONFIG = 'vllm:cache_config_info';
const ADAPTERS = 'vllm:lora_requests_info';
/** Adapters that one engine is taken to work with at once; more are passed over. */
const ACTIVE_ADAPTERS_MAX = 1_024;

/** Reads an engine's load out of its metrics; undefined when a figure that the engine must report is absent (absent is not zero). */
export function readTelemetry(kind: EngineKind, samples: readonly MetricSample[]): EngineTelemetry | undefined {
  const totals = new Map<string, number>();
  for (const sample of samples) totals.set(sample.name, (totals.get(sample.name) ?? 0) + sample.value);
  const mapping = engineMetricMapping[kind];
  // A figure without a name is one that the engine does not have, such as the tokens of a model of tensors.
  const readCount = (field: TelemetryField): number | undefined => (mapping[field].length === 0 ? 0 : read(field));
  const read = (field: TelemetryField): number | undefined => {
    const present = mapping[field].find((name) => totals.has(name));
    const value = present === undefined ? undefined : totals.get(present);
    return value !== undefined && Number.isFinite(value) && value >= 0 ? value : undefined;
  };
  const [running, waiting, promptTokensTotal, completionTokensTotal] = [readCount('running'), readCount('waiting'), readCount('promptTokensTotal'), readCount('completionTokensTotal')];
  if (running === undefined || waiting === undefined || promptTokensTotal === undefined || completionTokensTotal === undefined) return undefined;
  const kvCacheUsage = read('kvCacheUsage');
  const usage = kvCacheUsage === undefined ? null : Math.min(kvCacheUsage, 1);
  return { running, waiting, promptTokensTotal, completionTokensTotal, kvCacheUsage: usage, pace: paceOf(totals), kvTokens: kvTokensOf(samples), adapters: adaptersOf(samples) };
}

function paceOf(totals: ReadonlyMap<string, number>): EnginePace | null {
  const histogram = (names: readonly string[]): readonly [number, number] | undefined => {
    const name = names.find((one) => totals.has(`${one}_count`));
    const [count, sum] = [totals.get(`${name}_count`), totals.get(`${name}_sum`)];
    return count !== undefined && sum !== undefined && Number.isFinite(count) && Number.isFinite(sum) ? [count, sum] : undefined;
  };
  const [first, gap] = [histogram(FIRST_TOKEN), histogram(TOKEN_GAP)];
  return first === undefined || gap === undefined ? null : { firstTokens: first[0], firstTokenSeconds: first[1], tokenGaps: gap[0], tokenGapSeconds: gap[1] };
}

/** vLLM says tokens, or else blocks and their size, in the labels of a metric that is always 1; one for each engine of a data-parallel group. */
function kvTokensOf(samples: readonly MetricSample[]): number | null {
  const tokens = samples.filter(({ name }) => name === CACHE_CONFIG).map(({ labels }) => labelNumber(labels, 'kv_cache_size_tokens') ?? (labelNumber(labels, 'num_gpu_blocks') ?? Number.NaN) * (labelNumber(labels, 'block_size') ?? Number.NaN));
  const total = tokens.reduce((sum, one) => sum + one, 0);
  return tokens.length > 0 && Number.isSafeInteger(total) && total > 0 ? total : null;
}

function labelNumber(labels: string | undefined, name: string): number | undefined {
  const digits = new RegExp(`(?:^|,)\\s*${name}="(\\d+)"`).exec(labels ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * vLLM says in labels which adapters its requests name, and the value is when it said so (Unix seconds): series of earlier times stay,
 * so the newest one counts. null for an engine that was started without adapters. What it serves is not among its metrics.
 */
function adaptersOf(samples: readonly MetricSample[]): EngineAdapters | null {
  let newest: MetricSample | undefined;
  for (const sample of samples) if (sample.name === ADAPTERS && sample.value >= (newest?.value ?? -Infinity)) newest = sample;
  if (newest === undefined) return null;
  const names = [...labelNames(newest.labels, 'running_lora_adapters'), ...labelNames(newest.labels, 'waiting_lora_adapters')];
  const slots = labelNumber(newest.labels, 'max_lora');
  return { served: null, active: [...new Set(names)].slice(0, ACTIVE_ADAPTERS_MAX), slots: slots === undefined || slots < 1 ? null : slots };
}

/** A list with commas between its names. */
function labelNames(labels: string | undefined, name: string): readonly string[] {
  const list = new RegExp(`(?:^|,)\\s*${name}="([^"]*)"`).exec(labels ?? '')?.[1] ?? '';
  return list.split(',').map((one) => one.trim()).filter((one) => one !== '');
}
