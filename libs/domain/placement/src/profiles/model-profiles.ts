import { gpuTypeNamed } from '../catalogue/gpu-types.js';
import type { ModelFacts } from '../catalogue/model-facts.js';
import { profilesOn, type FleetHardware } from '../fleet/fleet-options.js';
import { publishedPoints } from './published-profiles.js';
import { improveProfile, profileHoles, type Figure, type ProfilePoint, type ReplicaProfile, type RequestShape } from './replica-profile.js';

/** What a ready replica measured. Amounts are of all its accelerators together. */
export interface MeasuredReplica {
  readonly replicaId: string;
  readonly modelVersionId: string;
  readonly precision: string | null;
  readonly device: { readonly acceleratorType: string; readonly slice: string | null; readonly tensorParallel: number; readonly nodes: number };
  readonly weightBytes: number | null;
  readonly kvTokens: number | null;
  readonly start: { readonly source: 'object_store' | 'node_cache' | 'none'; readonly pullMs: number; readonly loadMs: number; readonly warmUpMs: number };
  /** Each point with the replica that it was measured on, where that is another. */
  readonly curve: readonly { readonly concurrency: number; readonly requestsPerS: number; readonly ttftMs: number; readonly itlMs: number; readonly promptTokens: number; readonly completionTokens: number; readonly samples?: number | undefined; readonly replicaId?: string | undefined }[];
}

export interface ProfileQuestion {
  readonly modelVersionId: string;
  /** null where the files do not say enough for an estimate: only what was measured counts then. */
  readonly model: ModelFacts | null;
  readonly precisions: readonly string[];
  readonly hardware: readonly FleetHardware[];
  readonly shape: RequestShape;
  readonly measured: readonly MeasuredReplica[];
}

/** A profile that plans may not rest on, and what it lacks. */
export interface ProfileWithHoles {
  readonly gpuType: string;
  readonly precision: string;
  readonly missing: readonly string[];
}

export interface ProfileAnswer {
  readonly profiles: readonly ReplicaProfile[];
  readonly refused: readonly ProfileWithHoles[];
}

/** Requests of a measurement that differ by more than this factor in length are another workload. */
const SHAPE_FACTOR_MAX = 1.5;

/** Seconds to ready that are taken for a measured profile which never started from that source. */
const START_SECONDS_ASSUMED = 120;

/** What is known of a model version on hardware: estimates, in their place published rows, in their place measurements. */
export function profilesFor(question: ProfileQuestion): ProfileAnswer {
  const { model, hardware, shape, measured, modelVersionId } = question;
  const estimated = model === null ? [] : profilesOn(model, question.precisions, hardware.filter(hasDatasheet), shape).map((profile) => ({ ...improveProfile(profile, { curve: publishedPoints(profile, model.id) }), modelVersionId }));
  const improved = estimated.map((profile) => measured.filter((one) => isOf(one, profile)).reduce((known, one) => improveProfile(known, figuresOf(one, shape)), profile));
  const alone = measured.filter((one) => one.modelVersionId === modelVersionId && !improved.some((profile) => isOf(one, profile)) && hardware.some(({ gpu }) => isDevice(one, gpu.type)));
  const all = [...improved, ...alone.map((one) => measuredAlone(one, shape))];
  const refused: ProfileWithHoles[] = [];
  const profiles = all.filter((profile) => {
    const missing = profileHoles(profile);
    if (missing.length > 0) refused.push({ gpuType: profile.device.gpuType, precision: profile.precision, missing });
    return missing.length === 0;
  });
  return { profiles, refused };
}

/** Without a bandwidth there is nothing to estimate from. */
function hasDatasheet({ gpu }: FleetHardware): boolean {
  return gpu.bandwidthGbPerS > 0;
}

function isDevice(one: MeasuredReplica, gpuType: string): boolean {
  return (gpuTypeNamed(one.device.acceleratorType)?.type ?? one.device.acceleratorType) === gpuType;
}

function isOf(one: MeasuredReplica, profile: ReplicaProfile): boolean {
  return one.modelVersionId === profile.modelVersionId && isDevice(one, profile.device.gpuType) && one.device.slice === profile.device.slice
    && one.device.tensorParallel * one.device.nodes === profile.device.tensorParallel && (one.precision === null || one.precision.toLowerCase() === profile.precision);
}

function figuresOf(one: MeasuredReplica, shape: RequestShape): Partial<Pick<ReplicaProfile, 'weightBytes' | 'kvTokens' | 'curve' | 'startSeconds'>> & { readonly curve: readonly ProfilePoint[] } {
  const source = `replica ${one.replicaId}`;
  const figure = (value: number): Figure => ({ value, from: 'measured', source });
  const accelerators = one.device.tensorParallel * one.device.nodes;
  const { start } = one;
  const seconds = figure((start.pullMs + start.loadMs + start.warmUpMs) / 1_000);
  return {
    ...(one.weightBytes === null ? {} : { weightBytes: figure(one.weightBytes / accelerators) }),
    ...(one.kvTokens === null ? {} : { kvTokens: figure(one.kvTokens) }),
    ...(start.source === 'none' ? {} : { startSeconds: { object_store: start.source === 'object_store' ? seconds : assumedStart, node_cache: start.source === 'node_cache' ? seconds : assumedStart } }),
    curve: one.curve.filter((point) => isAlike(point, shape)).map(({ concurrency, requestsPerS, ttftMs, itlMs, samples, replicaId }) => ({ concurrency, requestsPerS, ttftMs, itlMs, from: 'measured', source: sourceOf(replicaId ?? one.replicaId, samples) })),
  };
}

function sourceOf(replicaId: string, samples: number | undefined): string {
  return samples === undefined ? `replica ${replicaId}` : `replica ${replicaId}, median of ${samples} looks`;
}

const assumedStart: Figure = { value: START_SECONDS_ASSUMED, from: 'estimated', source: 'assumed' };

/** What nobody could estimate: a processor without a datasheet, files without a header. Holes stay holes, but what ran fits, whatever its weights. */
function measuredAlone(one: MeasuredReplica, shape: RequestShape): ReplicaProfile {
  const figures = figuresOf(one, shape);
  const hole: Figure = { value: Number.NaN, from: 'estimated', source: 'not known' };
  return {
    modelVersionId: one.modelVersionId, precision: one.precision?.toLowerCase() ?? 'as registered', shape,
    device: { gpuType: gpuTypeNamed(one.device.acceleratorType)?.type ?? one.device.acceleratorType, slice: one.device.slice, tensorParallel: one.device.tensorParallel * one.device.nodes },
    weightBytes: figures.weightBytes ?? hole, kvTokens: figures.kvTokens ?? hole, curve: figures.curve, startSeconds: figures.startSeconds ?? { object_store: assumedStart, node_cache: assumedStart },
  };
}

function isAlike(point: { readonly promptTokens: number; readonly completionTokens: number }, shape: RequestShape): boolean {
  const near = (one: number, other: number): boolean => Math.max(one, 1) / Math.max(other, 1) <= SHAPE_FACTOR_MAX && Math.max(other, 1) / Math.max(one, 1) <= SHAPE_FACTOR_MAX;
  return near(point.promptTokens, shape.promptTokens) && near(point.completionTokens, shape.completionTokens);
}
