import { describe, expect, test } from '@jest/globals';
import { modelVersionRegisteredV1, type ModelVersionRegisteredV1 } from '@penstock/contract-events';
import { factsOf, knownModel, precisionNamed } from './registered-facts.js';

const registered: ModelVersionRegisteredV1 = modelVersionRegisteredV1.schema.parse(modelVersionRegisteredV1.example);

describe('facts of a registered model version', () => {
  test('a header that says enough is enough', () => {
    const facts = factsOf('smollm2-135m', registered);
    expect(facts).toMatchObject({ kind: 'known', precision: 'q4_1', facts: { kind: 'llm', params: 134_515_008, layers: 30, kvBytesPerToken: 23_040, weightBytes: { q4_1: 98_000_000 } } });
  });

  test('a well-known model is known by its repository or name, with its own weights beside', () => {
    const source = { kind: 'hugging-face', repository: 'Qwen/Qwen2.5-7B-Instruct', revision: 'main', files: [] } as const;
    expect(factsOf('anything', { ...registered, source: { ...source, files: [] }, precision: 'BF16', memory: { ...registered.memory, weightBytes: 15_000_000_000 } })).toMatchObject({ kind: 'known', precision: 'bf16', facts: { kvHeads: 4, weightBytes: { bf16: 15_000_000_000 } } });
    expect(knownModel('qwen2.5-7b-instruct')?.id).toBe('Qwen/Qwen2.5-7B-Instruct');
    expect(knownModel('qwen')).toBeUndefined();
  });

  test('what is missing is named', () => {
    const declared = { ...registered, source: { kind: 'none' } as const, precision: null, parameters: null, layers: null, memory: { weightBytes: 0, kvBytesPerToken: 0, overheadBytes: 0, basis: 'declared' as const } };
    expect(factsOf('sim', declared)).toEqual({ kind: 'unknown', missing: ['weightBytes', 'precision', 'parameters', 'layers', 'kvBytesPerToken'] });
    expect(factsOf('scores', { ...registered, capabilities: ['infer'], memory: { ...registered.memory, basis: 'assumed' } })).toMatchObject({ kind: 'known', facts: { kind: 'tensor', kvBytesPerToken: 0 } });
    expect(['F16', 'BF16', 'Q4_1', 'F8_E4M3'].map(precisionNamed)).toEqual(['fp16', 'bf16', 'q4_1', 'fp8']);
  });
});
