import { describe, expect, test } from '@jest/globals';
import { readTelemetry } from '@penstock/domain-serving';
import { parsePrometheusText } from './prometheus-text.js';

const vllm = `# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a b"} 2.0
vllm:num_requests_running{engine="1",model_name="a b"} 1.0
vllm:num_requests_waiting{engine="0"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 3.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:prompt_tokens_total{engine="0"} 1.2e+03
vllm:generation_tokens_total{engine="0"} 34.0 1795970952000
not a sample
`;

describe('an engine\'s load out of its metrics', () => {
  test('vLLM: exact names, summed over labels', () => {
    expect(readTelemetry('vllm', parsePrometheusText(vllm))).toEqual({ running: 3, waiting: 4, kvCacheUsage: 0.25, promptTokensTotal: 1_200, completionTokensTotal: 34, pace: null, kvTokens: null, adapters: null });
  });

  test('vLLM: how long tokens took, and the cache of all its engines', () => {
    const histograms = 'vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 2\nvllm:time_to_first_token_seconds_count{engine="0"} 3\nvllm:time_to_first_token_seconds_sum{engine="0"} 1.5\n'
      + 'vllm:inter_token_latency_seconds_count{engine="0"} 30\nvllm:inter_token_latency_seconds_sum{engine="0"} 0.6\nvllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1\nvllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="50"} 1\n';
    const read = (text: string) => readTelemetry('vllm', parsePrometheusText(vllm + text));
    expect(read(histograms)).toMatchObject({ pace: { firstTokens: 3, firstTokenSeconds: 1.5, tokenGaps: 30, tokenGapSeconds: 0.6 }, kvTokens: 2_400 });
    expect(read(histograms.replaceAll('inter_token_latency', 'time_per_output_token'))?.pace?.tokenGaps).toBe(30);
    expect(read(histograms.replaceAll('"100"', '"None"'))).toMatchObject({ kvTokens: null });
    expect(read(histograms.replace('latency_seconds_sum', 'other'))?.pace).toBeNull();
  });

  test('vLLM: adapters of its requests, of which the newest series counts', () => {
    const info = (running: string, waiting: string, at: string): string => `vllm:lora_requests_info{max_lora="2",running_lora_adapters="${running}",waiting_lora_adapters="${waiting}"} ${at}\n`;
    const read = (text: string) => readTelemetry('vllm', parsePrometheusText(vllm + text))?.adapters;
    expect(read(info('sql', 'support, french', '1.7959709521e+09') + info('old', '', '1.7959709520e+09'))).toEqual({ served: null, active: ['sql', 'support', 'french'], slots: 2 });
    expect(read(info('', '', '1795970952'))).toEqual({ served: null, active: [], slots: 2 });
    expect(read('vllm:lora_requests_info{max_lora="0"} 1\n')).toEqual({ served: null, active: [], slots: null });
  });

  test('an older name of the cache gauge counts where the new one is absent', () => {
    const older = vllm.replace('vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc');
    expect(readTelemetry('vllm', parsePrometheusText(older))?.kvCacheUsage).toBe(0.25);
  });

  test('llama.cpp has no cache gauge, and absent is not zero', () => {
    const text = 'llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\nllamacpp:prompt_tokens_total 37\nllamacpp:tokens_predicted_total 36\n';
    expect(readTelemetry('llama.cpp', parsePrometheusText(text))).toEqual({ running: 1, waiting: 0, kvCacheUsage: null, promptTokensTotal: 37, completionTokensTotal: 36, pace: null, kvTokens: null, adapters: null });
    expect(readTelemetry('llama.cpp', parsePrometheusText(text.replace('requests_deferred', 'other')))).toBeUndefined();
    expect(readTelemetry('llama.cpp', parsePrometheusText('llamacpp:requests_processing NaN'))).toBeUndefined();
  });
});
