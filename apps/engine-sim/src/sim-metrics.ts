import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SimOptions } from './options.js';
import type { Slots } from './slots.js';
import type { TimedEngine } from './timed-engine.js';

const TTFT_BUCKETS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2_560];
const ITL_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const E2E_BUCKETS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1_920, 7_680];
/** Tokens in one block of the key-value cache, as vLLM has it by default. */
const BLOCK_TOKENS = 16;

/** Series of the adapters' metric that are kept; vLLM keeps them all. */
const ADAPTER_SERIES_MAX = 64;

/** Adapters of the requests that an engine works with, and of those that wait. */
export interface AdaptersInUse {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
}

/** Metrics under vLLM's names, with its labels. */
export class SimMetrics {
  readonly registry = new Registry();
  /** What vLLM gives no labels of engine and model. */
  private readonly unlabelled = new Registry();
  /** Tokens that sit in the simulated key-value cache. */
  cachedTokens = 0;
  readonly promptTokens: Counter;
  readonly generationTokens: Counter;
  readonly requestSuccess: Counter;
  readonly ttftSeconds: Histogram;
  readonly itlSeconds: Histogram;
  readonly e2eSeconds: Histogram;

  constructor(options: SimOptions, slots: Slots, timed: TimedEngine | undefined, adapters: () => AdaptersInUse) {
    this.registry.setDefaultLabels({ engine: '0', model_name: options.model });
    const registers = [this.registry];
    const model = timed === undefined ? undefined : () => timed.metrics();
    const waiting = (): number => model?.().waiting ?? slots.waitingCount;
    const capacityTokens = model === undefined ? options['max-num-seqs'] * options['max-model-len'] : model().kvBlocks * BLOCK_TOKENS;
    const gauge = (name: string, help: string, read: () => number, labels: Record<string, string> = {}): void => {
      new Gauge({ name, help, registers, labelNames: Object.keys(labels), collect() { this.set(labels, read()); } });
    };
    gauge('vllm:num_requests_running', 'Number of requests in model execution batches.', () => model?.().running ?? slots.runningCount);
    gauge('vllm:num_requests_waiting', 'Number of requests waiting to be processed.', waiting);
    gauge('vllm:num_requests_waiting_by_reason', 'Waiting requests by reason.', waiting, { reason: 'capacity' });
    gauge('vllm:kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.', () => model?.().kvUsage ?? Math.min(1, this.cachedTokens / capacityTokens));
    gauge('vllm:engine_sleep_state', 'Engine sleep state.', () => 1, { sleep_state: 'awake' });
    gauge('vllm:cache_config_info', 'Information of the LLMEngine CacheConfig.', () => 1, {
      block_size: String(BLOCK_TOKENS), num_gpu_blocks: String(Math.floor(capacityTokens / BLOCK_TOKENS)), enable_prefix_caching: model === undefined ? 'False' : 'True',
    });
    if (options['lora-modules'].length > 0) tellAdapters(this.unlabelled, options['max-loras'], adapters);
    const counter = (name: string, help: string, read: () => number): void => {
      new Counter({ name, help, registers, collect() { this.reset(); this.inc(read()); } });
    };
    counter('vllm:num_preemptions_total', 'Cumulative number of preemption from the engine.', () => model?.().preemptions ?? 0);
    counter('vllm:prefix_cache_queries_total', 'Prefix cache queries, in terms of number of queried tokens.', () => model?.().prefixQueriedTokens ?? 0);
    counter('vllm:prefix_cache_hits_total', 'Prefix cache hits, in terms of number of cached tokens.', () => model?.().prefixHitTokens ?? 0);
    this.promptTokens = new Counter({ name: 'vllm:prompt_tokens_total', help: 'Number of prefill tokens processed.', registers });
    this.generationTokens = new Counter({ name: 'vllm:generation_tokens_total', help: 'Number of generation tokens processed.', registers });
    this.requestSuccess = new Counter({ name: 'vllm:request_success_total', help: 'Count of successfully processed requests.', labelNames: ['finished_reason'], registers });
    for (const reason of ['stop', 'length', 'abort', 'error']) this.requestSuccess.inc({ finished_reason: reason }, 0);
    this.ttftSeconds = new Histogram({ name: 'vllm:time_to_first_token_seconds', help: 'Histogram of time to first token in seconds.', buckets: TTFT_BUCKETS, registers });
    this.itlSeconds = new Histogram({ name: 'vllm:inter_token_latency_seconds', help: 'Histogram of inter-token latency in seconds.', buckets: ITL_BUCKETS, registers });
    this.e2eSeconds = new Histogram({ name: 'vllm:e2e_request_latency_seconds', help: 'Histogram of e2e request latency in seconds.', buckets: E2E_BUCKETS, registers });
  }

  /** In Prometheus' text format. */
  async text(): Promise<string> {
    return `${await this.registry.metrics()}\n${await this.unlabelled.metrics()}`;
  }
}

/** The names are labels and the value is the time, so that each change adds a series and the newest one counts. */
function tellAdapters(registry: Registry, slots: number, adapters: () => AdaptersInUse): void {
  let series = 0;
  let last = '';
  new Gauge({
    name: 'vllm:lora_requests_info', help: 'Running stats on lora requests.', registers: [registry], labelNames: ['max_lora', 'running_lora_adapters', 'waiting_lora_adapters'],
    collect() {
      const { running, waiting } = adapters();
      const labels = { max_lora: String(slots), running_lora_adapters: running.join(','), waiting_lora_adapters: waiting.join(',') };
      const key = JSON.stringify(labels);
      if (key !== last) series += 1;
      last = key;
      if (series > ADAPTER_SERIES_MAX) {
        this.reset();
        series = 1;
      }
      this.set(labels, Date.now() / 1_000);
    },
  });
}
