import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { kvTokensThatFit, replicaMemoryBytes, VLLM_OVERHEAD_BYTES } from './memory-estimate.js';

const GIB = 1_073_741_824;
const H100_BYTES = 79.2 * GIB;

describe('kvTokensThatFit', () => {
  // Key-value tokens that real vLLM engines reported at their start.
  test.each([
    ['Llama-3.1-70B on 4 H100', 141_100_000_000, 327_680, H100_BYTES, 4, 486_800],
    ['Mistral-Nemo on one H100', 24_500_000_000, 163_840, H100_BYTES, 1, 308_016],
    ['Mistral-Nemo on 2 H100', 24_500_000_000, 163_840, H100_BYTES, 2, 768_144],
    ['Qwen2.5-7B on one H100', 15_232_000_000, 57_344, H100_BYTES, 1, 1_045_632],
    ['Llama-3.1-8B on an RTX 4090', 16_060_000_000, 131_072, 25_250_627_584, 1, 41_408],
  ])('%s: within 1 %% of the engine', (_name, weightBytes, kvBytesPerToken, totalBytes, count, measured) => {
    const tokens = kvTokensThatFit({ weightBytes, kvBytesPerToken, overheadBytes: VLLM_OVERHEAD_BYTES }, { totalBytes, count });
    expect(Math.abs(tokens - measured) / measured).toBeLessThan(0.01);
  });

  test('nothing fits where the weights alone do not', () => {
    expect(kvTokensThatFit({ weightBytes: 30 * GIB, kvBytesPerToken: 131_072, overheadBytes: VLLM_OVERHEAD_BYTES }, { totalBytes: 24 * GIB, count: 1 })).toBe(0);
  });
});

describe('replicaMemoryBytes', () => {
  test('weights, a full context for each slot, and the overhead', () => {
    const memory = { weightBytes: 98_000_000, kvBytesPerToken: 23_040, overheadBytes: 50_000_000 };
    expect(replicaMemoryBytes(memory, { slotsPerReplica: 4, contextTokens: 2_048 })).toBe(98_000_000 + 23_040 * 2_048 * 4 + 50_000_000);
  });

  test('property: more of anything never needs less, and the sum is whole', () => {
    const whole = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(fc.property(whole, fc.double({ min: 0, max: 1e6, noNaN: true }), whole, fc.integer({ min: 1, max: 1_024 }), fc.integer({ min: 1, max: 100_000 }), (weightBytes, kvBytesPerToken, overheadBytes, slots, context) => {
      const memory = { weightBytes, kvBytesPerToken, overheadBytes };
      const bytes = replicaMemoryBytes(memory, { slotsPerReplica: slots, contextTokens: context });
      expect(Number.isInteger(bytes)).toBe(true);
      expect(replicaMemoryBytes(memory, { slotsPerReplica: slots + 1, contextTokens: context })).toBeGreaterThanOrEqual(bytes);
      expect(bytes).toBeGreaterThanOrEqual(weightBytes + overheadBytes);
    }));
  });
});
