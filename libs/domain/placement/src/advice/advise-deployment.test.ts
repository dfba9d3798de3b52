import { describe, expect, test } from '@jest/globals';
import { GPU_TYPES, gpuTypeNamed, gpuTypeOf, type GpuType } from '../catalogue/gpu-types.js';
import { MODEL_FACTS, type ModelFacts } from '../catalogue/model-facts.js';
import type { FleetHardware } from '../fleet/fleet-options.js';
import { profilesFor, type MeasuredReplica } from '../profiles/model-profiles.js';
import { adviseDeployment, type AdviceQuestion, type DeploymentAdvice } from './advise-deployment.js';

const gpu = (type: string): GpuType => gpuTypeOf(type) as GpuType;
const model = (id: string): ModelFacts => MODEL_FACTS.find((one) => one.id === id) as ModelFacts;
const HARDWARE: readonly FleetHardware[] = GPU_TYPES.filter(({ price }) => price.onDemand !== null).map((type) => ({ gpu: type, sharing: 'shares', tensorParallel: type.nvlinkGbPerS > 0 ? [1, 2, 4, 8] : [1], gangPerNode: 0 }));
const SHAPE = { promptTokens: 1_000, completionTokens: 200 };

function advise(id: string, precision: string, part: Partial<AdviceQuestion> = {}, precisions = ['bf16', 'fp16', 'fp8', 'int4']): DeploymentAdvice {
  const facts = model(id);
  const { profiles } = profilesFor({ modelVersionId: 'mv_1', model: facts, precisions, hardware: HARDWARE, shape: facts.kind === 'llm' ? SHAPE : { promptTokens: 200, completionTokens: 0 }, measured: [] });
  return adviseDeployment({ model: facts, precision, gpuType: 'H100-80GB-SXM', profiles, hardware: HARDWARE, ratePerS: 20, objective: { ttftMs: 2_000, itlMs: 80 }, pricePerGpu: (type) => gpuTypeOf(type)?.price.onDemand ?? null, isExact: false, ...part });
}

describe('advice on a deployment', () => {
  test('a 70B at 16 bits is cheaper at fewer, with the saving and what is published of the loss', () => {
    const advice = advise('meta-llama/Llama-3.1-70B-Instruct', 'bf16');
    expect(advice.kind).toBe('better');
    expect(advice.current?.precision).toBe('bf16');
    expect(advice.best?.dollarsPerHour).toBeLessThan(advice.current?.dollarsPerHour ?? 0);
    expect(advice.savedPercent).toBeCloseTo((100 * advice.savedDollarsPerHour) / (advice.current?.dollarsPerHour ?? 1), 6);
    expect([advice.best, ...advice.others].filter((way) => way !== null && way.precision !== 'bf16').every((way) => way?.quality?.source !== undefined)).toBe(true);
    expect(advice.says).toMatch(/save \$[\d.]+\/h \(\d+ %\)/);
  });

  test('for embeddings no other weights are advised, and the reason says why', () => {
    const advice = advise('BAAI/bge-large-en-v1.5', 'fp16', { objective: { ttftMs: 500, itlMs: 80 } });
    expect(advice.vetoes).toEqual([{ what: 'quantisation', reason: expect.stringContaining('what was stored before would not match') as unknown }]);
    expect([advice.best, ...advice.others].every((way) => way === null || way.precision === 'fp16')).toBe(true);
  });

  test('exact reproducibility keeps weights and hardware as they are', () => {
    const advice = advise('meta-llama/Llama-3.1-70B-Instruct', 'bf16', { isExact: true });
    expect(advice.vetoes.map(({ what }) => what)).toEqual(['quantisation', 'hardware']);
    expect(advice).toMatchObject({ kind: 'keep', savedDollarsPerHour: 0 });
    expect([advice.best, ...advice.others].every((way) => way === null || (way.gpuType === 'H100-80GB-SXM' && way.precision === 'bf16'))).toBe(true);
  });

  test('what is not reachable as asked for is told with a way that is, and nothing is advised where nothing keeps the objective', () => {
    expect(advise('meta-llama/Llama-3.1-405B-Instruct', 'bf16', { gpuType: 'L4-24GB' })).toMatchObject({ kind: 'better', current: null, says: expect.stringContaining('As asked for, it does not serve') as unknown });
    expect(advise('meta-llama/Llama-3.1-8B-Instruct', 'bf16', { objective: { ttftMs: 1, itlMs: 1 } })).toMatchObject({ kind: 'unreachable', best: null, says: expect.stringContaining('allow another precision') as unknown });
  });
});

describe('profiles of a model version', () => {
  const measured: MeasuredReplica = {
    replicaId: 'rep_1', modelVersionId: 'mv_1', precision: 'fp8', device: { acceleratorType: 'h100', slice: null, tensorParallel: 2, nodes: 1 }, weightBytes: 72_000_000_000, kvTokens: 300_000,
    start: { source: 'node_cache', pullMs: 0, loadMs: 20_000, warmUpMs: 1_000 }, curve: [{ concurrency: 32, requestsPerS: 5, ttftMs: 300, itlMs: 30, promptTokens: 1_000, completionTokens: 1_000 }],
  };
  const question = { modelVersionId: 'mv_1', model: model('meta-llama/Llama-3.1-70B-Instruct'), precisions: ['fp8'], hardware: HARDWARE.filter(({ gpu: { type } }) => type === 'H100-80GB-SXM'), shape: { promptTokens: 1_024, completionTokens: 1_024 }, measured: [measured] };

  test('measured points stand before published ones, published before estimated, and each says where it is from', () => {
    const on2 = profilesFor(question).profiles.find(({ device }) => device.tensorParallel === 2);
    const from = new Map(on2?.curve.map((point) => [point.concurrency, point.from]));
    expect([from.get(32), from.get(16), from.get(1)]).toEqual(['measured', 'published', 'estimated']);
    expect(on2).toMatchObject({ weightBytes: { value: 36_000_000_000, from: 'measured' }, kvTokens: { value: 300_000, from: 'measured', source: 'replica rep_1' }, startSeconds: { node_cache: { value: 21 } } });
    const on4 = profilesFor(question).profiles.find(({ device }) => device.tensorParallel === 4);
    expect(on4?.curve.some((point) => point.from === 'measured')).toBe(false);
  });

  test('what only was measured has a profile where it is whole; one with holes is refused with what is missing', () => {
    const cpu: FleetHardware = { gpu: { ...gpu('L4-24GB'), type: 'cpu' }, sharing: 'shares', tensorParallel: [1], gangPerNode: 0 };
    const onCpu: MeasuredReplica = { ...measured, device: { acceleratorType: 'cpu', slice: null, tensorParallel: 1, nodes: 1 }, precision: 'Q4_1' };
    const whole = profilesFor({ ...question, model: null, hardware: [cpu], measured: [onCpu] });
    expect(whole.profiles).toMatchObject([{ device: { gpuType: 'cpu' }, precision: 'q4_1', curve: [{ from: 'measured' }] }]);
    expect(profilesFor({ ...question, model: null, hardware: [cpu], measured: [{ ...onCpu, kvTokens: null, curve: [] }] })).toEqual({ profiles: [], refused: [{ gpuType: 'cpu', precision: 'q4_1', missing: ['kvTokens', 'curve'] }] });
  });

  test('short names of GPUs stand for the first of their kind, and nothing for what is none', () => {
    expect(['h100', 'H100-80GB-PCIe', 'l4', 'a100', 'L40S'].map((name) => gpuTypeNamed(name)?.type)).toEqual(['H100-80GB-SXM', 'H100-80GB-PCIe', 'L4-24GB', 'A100-80GB-SXM', 'L40S-48GB']);
    expect(['cpu', 'h', '', 'rtx9090', 'h10'].map((name) => gpuTypeNamed(name))).toEqual([undefined, undefined, undefined, undefined, undefined]);
  });
});
