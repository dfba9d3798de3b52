import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { GpuType } from '../catalogue/gpu-types.js';
import type { ModelFacts } from '../catalogue/model-facts.js';
import { MIG_GEOMETRIES } from '../mig/mig-geometries.js';
import { ENGINE_MEMORY_SHARE, ENGINE_OVERHEAD_MIB, estimateProfile, KV_HEADROOM, sliceShare, wholeGpu } from '../profiles/estimate-profile.js';
import { kneeOf, type LatencyObjective, type ReplicaProfile, type RequestShape } from '../profiles/replica-profile.js';
import type { FleetOption, FleetPart, FleetSharing } from './fleet-types.js';

/** Hardware that a fleet has, and how its GPUs are shared. */
export interface FleetHardware {
  readonly gpu: GpuType;
  readonly sharing: FleetSharing;
  /** Sizes of tensor-parallel groups that an island of it holds. */
  readonly tensorParallel: readonly number[];
  /** GPUs of a node, where a gang over several nodes is possible; 0 where it is not. */
  readonly gangPerNode: number;
}

/** Shares of a GPU are given in these steps. */
const SHARE_STEP_MILLI = 25;

/** More replicas of one kind than this are no sensible way to serve one endpoint. */
export const REPLICAS_MAX = 128;

const CPU_MILLI_PER_ACCELERATOR = 2_000;
const HOST_MEMORY_MIB_PER_REPLICA = 4_096;
const MIB = 1_048_576;

/** Every profile of the model on the hardware, at each precision and size. */
export function profilesOn(model: ModelFacts, precisions: readonly string[], hardware: readonly FleetHardware[], shape: RequestShape): readonly ReplicaProfile[] {
  return precisions.flatMap((precision) =>
    hardware.flatMap(({ gpu, sharing, tensorParallel, gangPerNode }) => {
      const groups = [...tensorParallel, ...(gangPerNode > 0 ? [gangPerNode * 2] : [])];
      const whole = groups.map((size) => estimateProfile(model, precision, gpu, wholeGpu(gpu), { gpuType: gpu.type, slice: null, tensorParallel: size }, shape));
      const geometry = sharing === 'mig' ? MIG_GEOMETRIES.find((one) => one.gpuType === gpu.migGeometry) : undefined;
      const largest = geometry?.profiles.at(-1);
      const slices = geometry === undefined || largest === undefined ? [] : geometry.profiles.filter((profile) => !profile.hasMediaExtensions).map((profile) => estimateProfile(model, precision, gpu, sliceShare(profile, largest), { gpuType: gpu.type, slice: profile.name, tensorParallel: 1 }, shape));
      return [...whole, ...slices].filter((profile) => profile !== undefined);
    }),
  );
}

/** The ways to serve a rate, in requests per second, under an objective: replicas at the knee, and a part of a GPU for the rest. */
export function optionsFor(model: Pick<ModelFacts, 'kvBytesPerToken'>, profiles: readonly ReplicaProfile[], hardware: readonly FleetHardware[], ratePerS: number, objective: LatencyObjective): readonly FleetOption[] {
  return profiles.flatMap((profile) => {
    const used = hardware.find((one) => one.gpu.type === profile.device.gpuType);
    const knee = kneeOf(profile, objective);
    if (used === undefined || knee === undefined || ratePerS / knee.requestsPerS > REPLICAS_MAX) return [];
    const { slice, tensorParallel } = profile.device;
    if (used.sharing === 'mig' && tensorParallel === 1 && slice === null) return [];
    const full = fullPart(profile, used);
    const wholes = Math.floor(ratePerS / knee.requestsPerS + 1e-9);
    const rest = ratePerS - wholes * knee.requestsPerS;
    const isShared = used.sharing === 'shares' && tensorParallel === 1;
    const tail = rest <= 1e-9 * ratePerS ? [] : isShared ? [sharePart(model, profile, used.gpu, rest, objective) ?? full] : [full];
    return [{ gpuType: used.gpu.type, sharing: used.sharing, precision: profile.precision, parts: [...Array.from({ length: wholes }, () => full), ...tail] }];
  });
}

function fullPart({ device }: ReplicaProfile, { gpu, gangPerNode }: FleetHardware): FleetPart {
  const isGang = gangPerNode > 0 && device.tensorParallel > gangPerNode;
  return {
    accelerators: device.tensorParallel,
    nodes: isGang ? device.tensorParallel / gangPerNode : 1,
    computeMilli: WHOLE_ACCELERATOR_MILLI,
    vramMib: device.slice === null ? gpu.usableMib : 0,
    migProfile: device.slice,
    cpuMilli: CPU_MILLI_PER_ACCELERATOR * device.tensorParallel,
    hostMemoryMib: HOST_MEMORY_MIB_PER_REPLICA,
  };
}

/**
 * The smallest share of the GPU's time that keeps the objective at this rate, and the memory it needs. A share slows every
 * iteration in proportion; it never lends memory. Undefined where the weights are not known, too.
 */
function sharePart(model: Pick<ModelFacts, 'kvBytesPerToken'>, profile: ReplicaProfile, gpu: GpuType, ratePerS: number, objective: LatencyObjective): FleetPart | undefined {
  for (let milli = SHARE_STEP_MILLI; milli < WHOLE_ACCELERATOR_MILLI; milli += SHARE_STEP_MILLI) {
    const share = milli / WHOLE_ACCELERATOR_MILLI;
    const point = profile.curve.find((one) => one.requestsPerS * share >= ratePerS && one.ttftMs / share <= objective.ttftMs && one.itlMs / share <= objective.itlMs);
    if (point === undefined) continue;
    const kvBytes = (point.concurrency * (profile.shape.promptTokens + profile.shape.completionTokens) * model.kvBytesPerToken) / (1 - KV_HEADROOM);
    const vramMib = Math.ceil(((profile.weightBytes.value + kvBytes) / MIB + ENGINE_OVERHEAD_MIB) / ENGINE_MEMORY_SHARE);
    if (!(vramMib <= gpu.usableMib)) continue;
    return { accelerators: 1, nodes: 1, computeMilli: milli, vramMib, migProfile: null, cpuMilli: CPU_MILLI_PER_ACCELERATOR, hostMemoryMib: HOST_MEMORY_MIB_PER_REPLICA };
  }
  return undefined;
}

/** For a refusal: the smallest known hardware that would hold the model, or that none does. */
export function hardwareHint(model: ModelFacts, precisions: readonly string[], tried: readonly FleetHardware[], known: readonly GpuType[], shape: RequestShape): string {
  const asked = tried.map(({ gpu }) => gpu.type).join(', ');
  const fitting = precisions
    .flatMap((precision) => known.flatMap((gpu) => [1, 2, 4, 8, 16].map((size) => ({ precision, gpu, size, profile: estimateProfile(model, precision, gpu, wholeGpu(gpu), { gpuType: gpu.type, slice: null, tensorParallel: size }, shape) }))))
    .filter(({ profile, gpu, size }) => profile !== undefined && (size === 1 || gpu.nvlinkGbPerS > 0))
    .sort((one, other) => one.size * (one.gpu.price.onDemand ?? one.gpu.memoryMib) - other.size * (other.gpu.price.onDemand ?? other.gpu.memoryMib))[0];
  const fits = fitting === undefined ? 'no known hardware holds it' : `${fitting.size} x ${fitting.gpu.type} at ${fitting.precision} would hold it`;
  return `${model.id} meets its objective on none of ${asked} at ${precisions.join(', ')}; ${fits}`;
}
