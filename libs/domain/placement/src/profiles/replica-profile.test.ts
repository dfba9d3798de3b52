import { describe, expect, test } from '@jest/globals';
import { GPU_TYPES, gpuTypeOf, type GpuType } from '../catalogue/gpu-types.js';
import { MODEL_FACTS, type ModelFacts } from '../catalogue/model-facts.js';
import { NODE_SHAPES } from '../catalogue/node-shapes.js';
import { hardwareHint, optionsFor, profilesOn, type FleetHardware } from '../fleet/fleet-options.js';
import { MIG_GEOMETRIES } from '../mig/mig-geometries.js';
import { estimateProfile, wholeGpu } from './estimate-profile.js';
import { profilesFor, type MeasuredReplica } from './model-profiles.js';
import { improveProfile, kneeOf, profileHoles, weakestSource, type ProfilePoint, type ReplicaProfile } from './replica-profile.js';

const gpu = (type: string): GpuType => gpuTypeOf(type) as GpuType;
const model = (id: string): ModelFacts => MODEL_FACTS.find((one) => one.id === id) as ModelFacts;
const SHAPE = { promptTokens: 1_000, completionTokens: 200 };
const H100: FleetHardware = { gpu: gpu('H100-80GB-SXM'), sharing: 'shares', tensorParallel: [1, 2, 4, 8], gangPerNode: 8 };
const L4: FleetHardware = { gpu: gpu('L4-24GB'), sharing: 'shares', tensorParallel: [1], gangPerNode: 0 };
const A100: FleetHardware = { gpu: gpu('A100-80GB-SXM'), sharing: 'mig', tensorParallel: [1, 2, 4, 8], gangPerNode: 8 };

const whole = (id: string, precision: string, type: string, tensorParallel: number): ReplicaProfile | undefined =>
  estimateProfile(model(id), precision, gpu(type), wholeGpu(gpu(type)), { gpuType: type, slice: null, tensorParallel }, SHAPE);

describe('the catalogue', () => {
  test('every reference in it leads somewhere', () => {
    for (const type of GPU_TYPES) {
      if (type.migGeometry !== null) expect(MIG_GEOMETRIES.map((geometry) => geometry.gpuType)).toContain(type.migGeometry);
      expect(type.usableMib).toBeLessThan(type.memoryMib);
    }
    for (const shape of NODE_SHAPES) {
      expect(gpuTypeOf(shape.gpuType)).toBeDefined();
      expect([...shape.islands.flat()].sort((one, other) => one - other)).toEqual(Array.from({ length: shape.gpus }, (_, index) => index));
    }
  });
});

describe('profiles', () => {
  // Tokens of cache that real vLLM engines reported.
  test.each([
    ['meta-llama/Llama-3.1-70B-Instruct', 4, 486_800],
    ['mistralai/Mistral-Nemo-Instruct-2407', 1, 308_016],
    ['mistralai/Mistral-Nemo-Instruct-2407', 2, 768_144],
    ['Qwen/Qwen2.5-7B-Instruct', 1, 1_045_632],
  ])('the cache of %s on %d H100 is within 1 % of a real engine', (id, tensorParallel, tokens) => {
    const estimated = whole(id, 'bf16', 'H100-80GB-SXM', tensorParallel)?.kvTokens.value ?? 0;
    expect(Math.abs(estimated - tokens) / tokens).toBeLessThan(0.01);
  });

  test('an estimate says that it is one, and has no holes', () => {
    const profile = whole('meta-llama/Llama-3.1-8B-Instruct', 'fp8', 'H100-80GB-SXM', 1) as ReplicaProfile;
    expect(profileHoles(profile)).toEqual([]);
    expect(profile.curve.every((point) => point.from === 'estimated' && point.source !== '')).toBe(true);
    expect(profileHoles({ ...profile, curve: [] })).toEqual(['curve']);
    expect(profileHoles({ ...profile, curve: [{ ...(profile.curve[0] as ProfilePoint), requestsPerS: Number.NaN }] })).toEqual(['curve[0]']);
  });

  test('no group spans MIG instances, and what does not fit has no profile', () => {
    const llama = model('meta-llama/Llama-3.1-8B-Instruct');
    expect(estimateProfile(llama, 'fp8', gpu('A100-80GB-SXM'), wholeGpu(gpu('A100-80GB-SXM')), { gpuType: 'A100-80GB-SXM', slice: '3g.40gb', tensorParallel: 2 }, SHAPE)).toBeUndefined();
    expect(whole('meta-llama/Llama-3.1-405B-Instruct', 'bf16', 'L4-24GB', 1)).toBeUndefined();
    expect(whole('meta-llama/Llama-3.1-8B-Instruct', 'fp3', 'H100-80GB-SXM', 1)).toBeUndefined();
  });

  test('the knee is the most that keeps the objective: 50 at once, where a real 70B still answers in time', () => {
    // NVIDIA NIM, Llama 3.3 70B fp8 on two H100, 5000 tokens in, 500 out.
    const rows: readonly (readonly [number, number, number, number])[] = [[1, 407, 18.6, 52], [25, 689, 38.8, 623], [50, 835, 59.7, 814], [100, 7_996, 92.9, 917]];
    const curve = rows.map(([concurrency, ttftMs, itlMs, tokens]): ProfilePoint => ({ concurrency, ttftMs, itlMs, requestsPerS: tokens / 500, from: 'published', source: 'NVIDIA NIM' }));
    const profile = { ...(whole('meta-llama/Llama-3.3-70B-Instruct', 'fp8', 'H100-80GB-SXM', 2) as ReplicaProfile), curve };
    expect(kneeOf(profile, { ttftMs: 2_000, itlMs: 80 })?.concurrency).toBe(50);
    expect(kneeOf(profile, { ttftMs: 100, itlMs: 80 })).toBeUndefined();
  });

  test('measured figures replace estimates, an estimate never replaces them, and what lies beyond is corrected alike', () => {
    const profile = whole('meta-llama/Llama-3.1-8B-Instruct', 'fp8', 'H100-80GB-SXM', 1) as ReplicaProfile;
    const at = (concurrency: number, from: ReplicaProfile): ProfilePoint => from.curve.find((point) => point.concurrency === concurrency) as ProfilePoint;
    const measured: ProfilePoint = { ...at(8, profile), itlMs: at(8, profile).itlMs * 2, requestsPerS: at(8, profile).requestsPerS / 2, from: 'measured', source: 'replica r1' };
    const better = improveProfile(profile, { curve: [measured], kvTokens: { value: 500_000, from: 'measured', source: 'replica r1' } });
    expect([at(8, better), better.kvTokens.value]).toEqual([measured, 500_000]);
    expect(at(16, better)).toMatchObject({ itlMs: at(16, profile).itlMs * 2, from: 'estimated' });
    expect(at(4, better)).toEqual(at(4, profile));
    const again = improveProfile(better, { curve: [at(8, profile)], kvTokens: profile.kvTokens });
    expect([at(8, again), again.kvTokens.value]).toEqual([measured, 500_000]);
  });
});

describe('what replicas measured under load', () => {
  const device = { acceleratorType: 'H100-80GB-SXM', slice: null, tensorParallel: 1, nodes: 1 };
  const start = { source: 'none', pullMs: 0, loadMs: 1, warmUpMs: 1 } as const;
  const point = { concurrency: 4, requestsPerS: 3, ttftMs: 60, itlMs: 20, promptTokens: 1_100, completionTokens: 180, samples: 20, replicaId: 'rep_1' };
  const objective = { ttftMs: 2_000, itlMs: 80 };
  const replica = (curve: readonly (typeof point)[]): MeasuredReplica => ({ replicaId: 'rep_2', modelVersionId: 'mv_1', precision: 'bf16', device, weightBytes: null, kvTokens: null, start, curve });
  const ask = (measured: readonly MeasuredReplica[], known: ModelFacts | null): readonly ReplicaProfile[] =>
    profilesFor({ modelVersionId: 'mv_1', model: known, precisions: ['bf16'], hardware: [{ ...H100, tensorParallel: [1] }], shape: SHAPE, measured }).profiles;

  test('comes before published and estimated figures, says whose it is, and corrects the estimates beyond it', () => {
    const llama = model('meta-llama/Llama-3.1-8B-Instruct');
    const [estimated] = ask([], llama);
    const [known] = ask([replica([{ ...point, concurrency: 5 }, { ...point, concurrency: 300 }])], llama);
    expect(known?.curve.find(({ concurrency }) => concurrency === 5)).toMatchObject({ requestsPerS: 3, from: 'measured', source: 'replica rep_1, median of 20 looks' });
    const highest = (profile: ReplicaProfile | undefined) => profile?.curve.findLast(({ from }) => from === 'estimated');
    expect(highest(known)).toEqual(highest(estimated));
    const [slow] = ask([replica([{ ...point, concurrency: 5, requestsPerS: 0.001 }])], llama);
    expect(highest(slow)?.requestsPerS).toBeLessThan((highest(estimated)?.requestsPerS ?? 0) / 10);
  });

  test('is enough for a plan where nothing can be estimated: what ran fits', () => {
    const [alone] = ask([replica([point])], null);
    expect(alone).toMatchObject({ weightBytes: { value: Number.NaN }, curve: [{ concurrency: 4, from: 'measured' }] });
    expect(weakestSource(alone as ReplicaProfile, objective)).toBe('measured');
    expect(optionsFor({ kvBytesPerToken: 0 }, [alone as ReplicaProfile], [H100], 1, objective)[0]?.parts).toMatchObject([{ computeMilli: 1_000 }]);
    expect(ask([replica([{ ...point, completionTokens: 2_000 }])], null)).toEqual([]);
  });
});

describe('ways to serve a rate', () => {
  const objective = { ttftMs: 2_000, itlMs: 80 };

  test('little load takes a part of a GPU, much load takes several', () => {
    const small = model('meta-llama/Llama-3.1-8B-Instruct');
    const profiles = profilesOn(small, ['fp8'], [H100], SHAPE);
    const [little] = optionsFor(small, profiles, [H100], 0.1, objective);
    expect(little?.parts).toHaveLength(1);
    expect(little?.parts[0]?.computeMilli).toBeLessThan(500);
    expect(little?.parts[0]?.vramMib).toBeGreaterThan(8_000);
    expect(optionsFor(small, profiles, [H100], 200, objective)[0]?.parts.length).toBeGreaterThan(2);
  });

  test('on GPUs in MIG mode single replicas take instances that hold them', () => {
    const small = model('meta-llama/Llama-3.1-8B-Instruct');
    const options = optionsFor(small, profilesOn(small, ['bf16'], [A100], SHAPE), [A100], 0.5, objective);
    const profiles = options.filter((option) => option.parts[0]?.accelerators === 1).map((option) => option.parts[0]?.migProfile);
    expect(profiles).toContain('3g.40gb');
    expect(profiles).not.toContain('1g.10gb');
    expect(profiles).not.toContain(null);
  });

  test('405B on L4 is refused with what would hold it', () => {
    const huge = model('meta-llama/Llama-3.1-405B-Instruct');
    expect(optionsFor(huge, profilesOn(huge, ['fp8'], [L4], SHAPE), [L4], 1, objective)).toEqual([]);
    expect(hardwareHint(huge, ['fp8'], [L4], GPU_TYPES, SHAPE)).toMatch(/405B-Instruct meets its objective on none of L4-24GB at fp8; (4|8) x .* at fp8 would hold it/);
  });
});
