import { expect, test } from '@jest/globals';
import { endpointDeployedV1, type EndpointDeployedV1 } from '@penstock/contract-events';
import { kvEventsPortOf } from './kv-events-port.js';
import { servingPaceOf } from './serving-pace.js';

const endpoint = (change: Partial<EndpointDeployedV1>) => ({ ...(endpointDeployedV1.example as EndpointDeployedV1), ...change, rules: null, status: 'active' as const, createdAtMs: 0 });

test('what the operator said counts, the cache of llama.cpp follows from its slots, and nonsense is nothing', () => {
  expect(servingPaceOf(endpoint({ engine: 'vllm', engineOptions: { kv_cache_tokens: 80_000, prefill_tokens_per_second: 20_000 } }))).toEqual({ kvTokens: 80_000, cacheTokens: 80_000, prefillTokensPerSecond: 20_000 });
  const serving = { slotsPerReplica: 4, contextTokens: 2_048, queueMax: 1, queueWaitMsMax: 1 };
  expect(servingPaceOf(endpoint({ engine: 'llama.cpp', serving, engineOptions: { kv_cache_tokens: -1 } }))).toEqual({ kvTokens: null, cacheTokens: 8_192, prefillTokensPerSecond: null });
  expect(servingPaceOf(undefined)).toEqual({ kvTokens: null, cacheTokens: null, prefillTokensPerSecond: null });
});

test('a port for cache events is one that can be', () => {
  expect(kvEventsPortOf(endpoint({ engine: 'vllm', engineOptions: { kv_events_port: 5_557 } }))).toBe(5_557);
  for (const port of [0, 65_536, 1.5, '5557', true]) expect(kvEventsPortOf(endpoint({ engineOptions: { kv_events_port: port } }))).toBeNull();
  expect(kvEventsPortOf(undefined)).toBeNull();
});
