import { canAdd, layoutProblems, profileOf, type MigGeometry, type MigInstance, type MigLayout } from './mig-geometry.js';
import { bestStart, startsFor } from './mig-layouts.js';

/** An instance that is there, and who uses it; null when it is idle. */
export interface LiveInstance extends MigInstance {
  readonly replicaId: string | null;
}

export interface MigGpu {
  readonly gpuId: string;
  readonly instances: readonly LiveInstance[];
}

/**
 * One step of a change. Each is safe by itself: before and after it every layout is legal and every replica has at least
 * one instance, so that a crash between two steps loses nothing and gives nothing away twice.
 */
export type MigStep =
  | { readonly kind: 'create'; readonly gpuId: string; readonly instance: MigInstance; readonly forReplicaId: string | null }
  /** The replica starts on its new instance, is ready, then drains on the old one. */
  | { readonly kind: 'move'; readonly replicaId: string; readonly fromGpuId: string; readonly from: MigInstance; readonly toGpuId: string; readonly to: MigInstance }
  | { readonly kind: 'destroy'; readonly gpuId: string; readonly instance: MigInstance };

export interface TransitionPrices {
  /** Dollars that starting a replica elsewhere and draining it costs. */
  readonly perMove: (replicaId: string) => number;
  /** Dollars per hour that one more instance of the wanted profile is worth. */
  readonly benefitPerHour: number;
  /** For how long the demand is expected to last, in hours. */
  readonly horizonHours: number;
}

export type MigTransition =
  | { readonly kind: 'steps'; readonly gpuId: string; readonly steps: readonly MigStep[]; readonly costDollars: number; readonly benefitDollars: number }
  | { readonly kind: 'refused'; readonly reason: string };

/** GPUs on which room is looked for, those with the fewest replicas first. */
const TARGETS_MAX = 128;

/**
 * How to make room for one more instance of a profile: on a GPU where it fits at once, or by moving the replicas that stand
 * in its way. A replica is moved to an instance made before on any GPU, then its old one goes. Refused when nothing makes
 * room, or when the moves cost more than the instance is worth.
 */
export function planTransition(geometry: MigGeometry, gpus: readonly MigGpu[], profile: string, prices: TransitionPrices): MigTransition {
  if (profileOf(geometry, profile) === undefined) return { kind: 'refused', reason: `${geometry.gpuType} has no profile ${profile}; it has ${geometry.profiles.map((one) => one.name).join(', ')}` };
  const benefitDollars = prices.benefitPerHour * prices.horizonHours;
  const replicasOn = (gpu: MigGpu): number => gpu.instances.filter((instance) => instance.replicaId !== null).length;
  const targets = [...gpus].sort((one, other) => replicasOn(one) - replicasOn(other)).slice(0, TARGETS_MAX);
  const candidates = targets.flatMap((gpu) => (profileOf(geometry, profile)?.starts ?? []).flatMap((start) => {
    const steps = stepsFor(geometry, gpus, gpu, { profile, start });
    if (steps === undefined) return [];
    const costDollars = steps.reduce((sum, step) => sum + (step.kind === 'move' ? prices.perMove(step.replicaId) : 0), 0);
    return [{ gpuId: gpu.gpuId, steps, costDollars, keeps: keepsBest(geometry, gpu, { profile, start }) }];
  }));
  candidates.sort((one, other) => one.costDollars - other.costDollars || one.steps.length - other.steps.length || Number(other.keeps) - Number(one.keeps));
  const best = candidates[0];
  if (best === undefined) return { kind: 'refused', reason: `no GPU can make room for ${profile}, not even with its replicas moved: add a GPU` };
  if (best.costDollars > benefitDollars) return { kind: 'refused', reason: `making room for ${profile} costs ${best.costDollars.toFixed(2)} dollars of drains and brings ${benefitDollars.toFixed(2)}` };
  return { kind: 'steps', gpuId: best.gpuId, steps: best.steps, costDollars: best.costDollars, benefitDollars };
}

/** Whether the start is the one that keeps the most possible, where the GPU has room already. */
function keepsBest(geometry: MigGeometry, gpu: MigGpu, instance: MigInstance): boolean {
  return bestStart(geometry, gpu.instances, instance.profile)?.start === instance.start;
}

function stepsFor(geometry: MigGeometry, gpus: readonly MigGpu[], target: MigGpu, wanted: MigInstance): readonly MigStep[] | undefined {
  const leaving = obstacles(geometry, target, wanted);
  if (leaving === undefined) return undefined;
  const steps: MigStep[] = [];
  const layouts = new Map<string, MigLayout>(gpus.map((gpu) => [gpu.gpuId, gpu.instances]));
  const claimed = new Set<string>(leaving.map((instance) => keyOf(target.gpuId, instance)));
  for (const instance of leaving) {
    if (instance.replicaId !== null) {
      const home = idleHome(gpus, claimed, instance.profile) ?? newHome(geometry, layouts, gpus, { gpuId: target.gpuId, wanted, leaving }, instance.profile);
      if (home === undefined) return undefined;
      if (!home.isIdle) {
        steps.push({ kind: 'create', gpuId: home.gpuId, instance: home.instance, forReplicaId: instance.replicaId });
        layouts.set(home.gpuId, [...(layouts.get(home.gpuId) ?? []), home.instance]);
      }
      claimed.add(keyOf(home.gpuId, home.instance));
      steps.push({ kind: 'move', replicaId: instance.replicaId, fromGpuId: target.gpuId, from: bare(instance), toGpuId: home.gpuId, to: home.instance });
    }
    steps.push({ kind: 'destroy', gpuId: target.gpuId, instance: bare(instance) });
    layouts.set(target.gpuId, (layouts.get(target.gpuId) ?? []).filter((one) => !isSame(one, instance)));
  }
  if (!canAdd(geometry, layouts.get(target.gpuId) ?? [], wanted)) return undefined;
  return [...steps, { kind: 'create', gpuId: target.gpuId, instance: wanted, forReplicaId: null }];
}

/**
 * The steps that make an instance on one GPU where only idle ones are in its way: what has to go, then the instance. Undefined
 * where a replica is in the way, or where it can never be made.
 */
export function stepsToMake(geometry: MigGeometry, gpu: MigGpu, wanted: MigInstance): readonly (MigInstance & { readonly kind: 'create' | 'destroy' })[] | undefined {
  const leaving = obstacles(geometry, gpu, wanted);
  if (leaving === undefined || leaving.some((instance) => instance.replicaId !== null)) return undefined;
  return [...leaving.map((instance) => ({ kind: 'destroy' as const, ...bare(instance) })), { kind: 'create', ...bare(wanted) }];
}

/** Instances that have to go before the wanted one fits: those it overlaps, then idle and small ones until compute suffices. */
function obstacles(geometry: MigGeometry, gpu: MigGpu, wanted: MigInstance): readonly LiveInstance[] | undefined {
  const size = profileOf(geometry, wanted.profile)?.memorySlices ?? 0;
  const overlaps = (one: LiveInstance): boolean => one.start < wanted.start + size && wanted.start < one.start + (profileOf(geometry, one.profile)?.memorySlices ?? 0);
  const out = gpu.instances.filter(overlaps);
  const others = gpu.instances
    .filter((one) => !overlaps(one))
    .sort((one, other) => Number(one.replicaId !== null) - Number(other.replicaId !== null) || (profileOf(geometry, one.profile)?.computeSlices ?? 0) - (profileOf(geometry, other.profile)?.computeSlices ?? 0));
  while (layoutProblems(geometry, [...gpu.instances.filter((one) => !out.includes(one)), wanted]).length > 0) {
    const next = others.shift();
    if (next === undefined) return undefined;
    out.push(next);
  }
  return out;
}

interface Home {
  readonly gpuId: string;
  readonly instance: MigInstance;
  readonly isIdle: boolean;
}

/** An instance of the profile that nobody uses and nothing else was promised. */
function idleHome(gpus: readonly MigGpu[], claimed: ReadonlySet<string>, profile: string): Home | undefined {
  for (const gpu of gpus) {
    const idle = gpu.instances.find((one) => one.profile === profile && one.replicaId === null && !claimed.has(keyOf(gpu.gpuId, one)));
    if (idle !== undefined) return { gpuId: gpu.gpuId, instance: bare(idle), isIdle: true };
  }
  return undefined;
}

/** Room to make one that the wanted instance will not need itself. */
function newHome(geometry: MigGeometry, layouts: ReadonlyMap<string, MigLayout>, gpus: readonly MigGpu[], target: { readonly gpuId: string; readonly wanted: MigInstance; readonly leaving: readonly MigInstance[] }, profile: string): Home | undefined {
  for (const { gpuId } of gpus) {
    const layout = layouts.get(gpuId) ?? [];
    for (const start of startsFor(geometry, layout, profile)) {
      const instance = { profile, start };
      const isInTheWay = gpuId === target.gpuId && !canAdd(geometry, [...layout.filter((one) => !target.leaving.some((gone) => isSame(gone, one))), instance], target.wanted);
      if (!isInTheWay) return { gpuId, instance, isIdle: false };
    }
  }
  return undefined;
}

/** What the GPUs look like after a step; an illegal step is refused, so that a driver can check before it acts. */
export function applyMigStep(geometry: MigGeometry, gpus: readonly MigGpu[], step: MigStep): readonly MigGpu[] {
  const change = (gpuId: string, next: (instances: readonly LiveInstance[]) => readonly LiveInstance[]): readonly MigGpu[] => gpus.map((gpu) => (gpu.gpuId === gpuId ? { gpuId, instances: next(gpu.instances) } : gpu));
  const instancesOf = (gpuId: string): readonly LiveInstance[] => gpus.find((gpu) => gpu.gpuId === gpuId)?.instances ?? [];
  switch (step.kind) {
    case 'create': {
      const problems = layoutProblems(geometry, [...instancesOf(step.gpuId), step.instance]);
      if (problems.length > 0) throw new Error(`${step.gpuId}: ${problems.join('; ')}`);
      return change(step.gpuId, (instances) => [...instances, { ...step.instance, replicaId: null }]);
    }
    case 'move': {
      const to = instancesOf(step.toGpuId).find((one) => isSame(one, step.to));
      const from = instancesOf(step.fromGpuId).find((one) => isSame(one, step.from));
      if (to?.replicaId !== null || from?.replicaId !== step.replicaId) throw new Error(`${step.replicaId} cannot move to ${step.to.profile} of ${step.toGpuId}: it is not there, or not free.`);
      const seat = (gpuId: string, one: LiveInstance): LiveInstance => (gpuId === step.toGpuId && isSame(one, step.to) ? { ...one, replicaId: step.replicaId } : gpuId === step.fromGpuId && isSame(one, step.from) ? { ...one, replicaId: null } : one);
      return gpus.map((gpu) => ({ gpuId: gpu.gpuId, instances: gpu.instances.map((one) => seat(gpu.gpuId, one)) }));
    }
    case 'destroy': {
      const gone = instancesOf(step.gpuId).find((one) => isSame(one, step.instance));
      if (gone?.replicaId !== null) throw new Error(`${step.instance.profile} of ${step.gpuId} cannot be destroyed: it is not there, or in use.`);
      return change(step.gpuId, (instances) => instances.filter((one) => !isSame(one, step.instance)));
    }
  }
}

function isSame(one: MigInstance, other: MigInstance): boolean {
  return one.start === other.start && one.profile === other.profile;
}

function keyOf(gpuId: string, { profile, start }: MigInstance): string {
  return `${gpuId}/${profile}@${start}`;
}

function bare({ profile, start }: MigInstance): MigInstance {
  return { profile, start };
}
