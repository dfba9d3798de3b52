import type { CommittedCapacity, ServiceLevel } from '@penstock/contract-events';
import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { ModelFacts } from '../catalogue/model-facts.js';
import { optionsFor, type FleetHardware } from '../fleet/fleet-options.js';
import type { FleetDemand, FleetOption, FleetPart } from '../fleet/fleet-types.js';
import { kneeOf, weakestSource, type ReplicaProfile } from '../profiles/replica-profile.js';
import { objectiveOf, promisedRate } from './service-terms.js';

/** One way to keep a promise. */
export interface CapacityOption {
  readonly option: FleetOption;
  readonly capacity: CommittedCapacity;
  /** In words: how many replicas of what carry which rate. */
  readonly says: string;
}

/** What decides how a promise could be kept. */
export interface CapacityQuestion {
  readonly level: ServiceLevel;
  readonly model: Pick<ModelFacts, 'kvBytesPerToken'>;
  readonly profiles: readonly ReplicaProfile[];
  readonly hardware: readonly FleetHardware[];
  /** Failure domains that have the type of GPU. */
  readonly domainsWith: (gpuType: string) => number;
  /** Dollars for one GPU and hour, on demand; null where it is not known. */
  readonly pricePerGpu: (gpuType: string) => number | null;
}

/** Replicas begin to start at most this long before a promise does. */
const LEAD_SECONDS_MAX = 3_600;

/** Every way to carry the promised rate within the objective, the cheapest first. Empty when no profile keeps the objective. */
export function capacityOptions(question: CapacityQuestion): readonly CapacityOption[] {
  const { level, model, profiles, hardware } = question;
  const rate = promisedRate(level);
  const usable = profiles.filter((profile) => level.gpuType === null || profile.device.gpuType === level.gpuType);
  const found = usable.flatMap((profile) => {
    const knee = kneeOf(profile, objectiveOf(level));
    return knee === undefined ? [] : optionsFor(model, [profile], hardware, rate, objectiveOf(level)).flatMap((option) => capacityOf(question, profile, option, knee.requestsPerS, rate) ?? []);
  });
  return found.sort((one, other) => dollarsOf(one) - dollarsOf(other) || gpusOf(one.option) - gpusOf(other.option) || (one.option.precision < other.option.precision ? -1 : 1));
}

/** A promise of replicas by number, all alike, on hardware that the endpoint runs on. */
export function countedCapacity(level: ServiceLevel, part: FleetPart, on: Pick<FleetOption, 'gpuType' | 'sharing' | 'precision'>, domains: number, pricePerGpu: number | null): CapacityOption | undefined {
  const parts = withSpare(Array.from({ length: level.replicas }, () => part), level, domains);
  if (parts === undefined) return undefined;
  const option: FleetOption = { ...on, parts: parts.parts };
  return {
    option,
    capacity: { ...on, parts: counted(parts.parts), requestsPerS: null, perDomainMax: parts.perDomainMax, leadSeconds: 0, dollarsPerHour: pricePerGpu === null ? null : pricePerGpu * gpusOf(option), figuresFrom: 'declared' },
    says: `${countWords(level.replicas)}, as many as were asked for${spareWords(level)}`,
  };
}

/** The demand that stands for the capacity while it is packed. */
export function demandOf(key: string, { option, capacity }: Pick<CapacityOption, 'option' | 'capacity'>): FleetDemand {
  return { endpointId: key, options: [option], hint: '', allowsSpot: false, pinnedNodeIds: null, tolerations: [], perDomainMax: capacity.perDomainMax };
}

/** The option that was promised, as it stands in the log. */
export function optionOf({ gpuType, sharing, precision, parts }: CommittedCapacity): FleetOption {
  return { gpuType, sharing, precision, parts: parts.flatMap(({ count, ...part }) => Array.from({ length: count }, () => part)) };
}

/** GPUs' worth of an option: a share counts as what it is of a GPU; a group has its GPUs alone, and an instance counts as one. */
export function gpusOf(option: FleetOption): number {
  return option.parts.reduce((sum, part) => sum + part.accelerators * (part.migProfile === null && part.accelerators === 1 ? part.computeMilli / 1_000 : 1), 0);
}

function capacityOf(question: CapacityQuestion, profile: ReplicaProfile, option: FleetOption, perReplica: number, rate: number): CapacityOption | undefined {
  const { level } = question;
  // Replicas of one endpoint are alike: the rest of a rate takes a whole replica, unless it is all there is.
  const largest = option.parts[0] as FleetPart;
  const alike = option.parts.map(() => largest);
  const spared = withSpare(alike, level, question.domainsWith(option.gpuType));
  if (spared === undefined) return undefined;
  const whole: FleetOption = { ...option, parts: spared.parts };
  const price = question.pricePerGpu(option.gpuType);
  const isWhole = largest.computeMilli >= WHOLE_ACCELERATOR_MILLI || largest.migProfile !== null;
  const carried = isWhole ? alike.length * perReplica : rate;
  const device = `${profile.device.tensorParallel === 1 ? '' : `${profile.device.tensorParallel} x `}${profile.device.gpuType}${profile.device.slice === null ? '' : ` ${profile.device.slice}`}`;
  return {
    option: whole,
    capacity: {
      gpuType: option.gpuType, sharing: option.sharing, precision: option.precision, parts: counted(whole.parts), requestsPerS: carried, perDomainMax: spared.perDomainMax,
      leadSeconds: Math.min(LEAD_SECONDS_MAX, Math.ceil(profile.startSeconds.object_store.value)), dollarsPerHour: price === null ? null : price * gpusOf(whole), figuresFrom: weakestSource(profile, objectiveOf(level)),
    },
    says: `${countWords(option.parts.length)} on ${device} at ${profile.precision} carry ${round(rate)} requests/s within ${level.ttftMs} ms to the first token and ${level.itlMs} ms between tokens${spareWords(level)}`,
  };
}

/**
 * Adds what may fail. To survive a failure domain, the fewest replicas so that those outside of the fullest domain still
 * carry the rate. Undefined where a single domain has all of the hardware.
 */
function withSpare(parts: readonly FleetPart[], level: ServiceLevel, domains: number): { readonly parts: readonly FleetPart[]; readonly perDomainMax: number | null } | undefined {
  const largest = parts[0];
  if (level.tolerates === 'nothing' || largest === undefined) return { parts, perDomainMax: null };
  if (level.tolerates === 'replica') return { parts: [largest, ...parts], perDomainMax: null };
  if (domains < 2) return undefined;
  let total = parts.length + 1;
  while (total - Math.ceil(total / domains) < parts.length) total += 1;
  return { parts: [...Array.from({ length: total - parts.length }, () => largest), ...parts], perDomainMax: Math.ceil(total / domains) };
}

export function countWords(replicas: number): string {
  return `${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`;
}

function spareWords(level: ServiceLevel): string {
  if (level.tolerates === 'replica') return ', and one more may fail';
  return level.tolerates === 'failure-domain' ? ', and a whole failure domain may be lost' : '';
}

function counted(parts: readonly FleetPart[]): CommittedCapacity['parts'] {
  return [...Map.groupBy(parts, (part) => JSON.stringify(part)).values()].map((alike) => ({ ...(alike[0] as FleetPart), count: alike.length }));
}

/** Options without a known price come after all others. */
function dollarsOf({ capacity }: CapacityOption): number {
  return capacity.dollarsPerHour ?? Number.MAX_VALUE;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
