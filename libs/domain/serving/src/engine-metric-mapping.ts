import type { EngineKind } from '@penstock/contract-events';
import type { EngineTelemetry } from './engine-probe.js';

/** One sample of Prometheus text. */
export interface MetricSample {
  readonly name: string;
  readonly value: number;
}

type TelemetryField = keyof EngineTelemetry;

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
  return { running, waiting, promptTokensTotal, completionTokensTotal, kvCacheUsage: kvCacheUsage === undefined ? null : Math.min(kvCacheUsage, 1) };
}
