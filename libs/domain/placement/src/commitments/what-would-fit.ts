import type { FittingAlternative, ServiceLevel } from '@penstock/contract-events';
import type { FleetNode } from '../fleet/fleet-types.js';
import type { AdmissionInput } from './admit-reservation.js';
import { countWords, gpusOf, type CapacityOption } from './capacity-options.js';
import { windowOf } from './commitment-book.js';
import { CommittedFleet } from './committed-fleet.js';
import { beginMsOf, endMsOf, promisedRate } from './service-terms.js';

/** Halvings of the rate that is searched for. */
const RATE_STEPS = 7;
/** Ends of other promises that are tried as a later beginning, and ways tried at each. */
const LATER_TRIED_MAX = 16;
const OPTIONS_TRIED_MAX = 12;
/** More nodes than this are no advice. */
const NODES_ADDED_MAX = 64;

type Question = Pick<AdmissionInput, 'level' | 'nodes' | 'commitments' | 'optionsFor' | 'nodeToAdd' | 'nowMs'>;

/** Levels like the refused one that would be admitted now: less, later, on other hardware, on a larger fleet. */
export function whatWouldFit(input: Question): readonly FittingAlternative[] {
  return [otherHardware(input), less(input), later(input), moreNodes(input)].filter((found) => found !== undefined);
}

function windowFor({ nodes, commitments, nowMs }: Question, level: ServiceLevel): CommittedFleet {
  return new CommittedFleet(nodes, commitments, Math.max(nowMs, beginMsOf(level)), endMsOf(level));
}

function firstFit(fleet: CommittedFleet, options: readonly CapacityOption[]): CapacityOption | undefined {
  return options.slice(0, OPTIONS_TRIED_MAX).find((option) => fleet.fits(option));
}

/** The part of the level, by rate or by number of replicas; undefined where nothing is left. */
function scaled(level: ServiceLevel, share: number): ServiceLevel | undefined {
  const replicas = Math.floor(level.replicas * share);
  if (level.replicas > 0 && replicas === 0) return undefined;
  return { ...level, requestsPerS: level.requestsPerS * share, tokensPerS: level.tokensPerS * share, replicas };
}

function less(input: Question): FittingAlternative | undefined {
  const { level } = input;
  const fleet = windowFor(input, level);
  let low = 0;
  let high = 1;
  let best: { readonly option: CapacityOption; readonly level: ServiceLevel; readonly share: number } | undefined;
  for (let step = 0; step < RATE_STEPS; step += 1) {
    const share = level.replicas > 0 ? Math.ceil(level.replicas * ((low + high) / 2)) / level.replicas : (low + high) / 2;
    const smaller = scaled(level, share);
    const option = smaller === undefined || share >= 1 ? undefined : firstFit(fleet, input.optionsFor(smaller));
    if (option === undefined || smaller === undefined) {
      high = Math.min(share, (low + high) / 2);
      continue;
    }
    best = { option, level: smaller, share };
    low = share;
  }
  if (best === undefined) return undefined;
  return alternative('less', best.option, level.from, best.share, `${amount(best.level)} would fit: ${hardware(best.option)}. Ask for that much.`);
}

function later(input: Question): FittingAlternative | undefined {
  const { level, commitments, nowMs } = input;
  const beginMs = Math.max(nowMs, beginMsOf(level));
  const lengthMs = endMsOf(level) - beginMsOf(level);
  const ends = [...new Set(commitments.map((made) => windowOf(made).endMs))].filter((endMs) => endMs > beginMs && Number.isFinite(endMs)).sort((one, other) => one - other);
  for (const endMs of ends.slice(0, LATER_TRIED_MAX)) {
    const from = new Date(endMs).toISOString();
    const moved: ServiceLevel = { ...level, from, to: Number.isFinite(lengthMs) ? new Date(endMs + lengthMs).toISOString() : null };
    const option = firstFit(windowFor(input, moved), input.optionsFor(moved));
    if (option !== undefined) return alternative('later', option, from, 1, `${amount(level)} would fit from ${from} on, when another reservation ends: ${hardware(option)}. Begin then.`);
  }
  return undefined;
}

function otherHardware(input: Question): FittingAlternative | undefined {
  const { level } = input;
  if (level.gpuType === null) return undefined;
  const open: ServiceLevel = { ...level, gpuType: null };
  const option = firstFit(windowFor(input, level), input.optionsFor(open).filter(({ option: { gpuType } }) => gpuType !== level.gpuType));
  return option === undefined ? undefined : alternative('other-hardware', option, level.from, 1, `${amount(level)} would fit on ${hardware(option)}. Name that hardware, or none.`);
}

/** The fewest nodes of the kind that the cheapest way needs, by doubling and halving. */
function moreNodes(input: Question): FittingAlternative | undefined {
  const { level, nodes } = input;
  const option = input.optionsFor(level).find(({ option: { gpuType } }) => input.nodeToAdd(gpuType) !== undefined);
  const shape = option === undefined ? undefined : input.nodeToAdd(option.option.gpuType);
  if (option === undefined || shape === undefined) return undefined;
  const enough = (count: number): boolean => windowFor({ ...input, nodes: [...nodes, ...added(shape, count)] }, level).fits(option);
  let high = 1;
  while (high <= NODES_ADDED_MAX && !enough(high)) high *= 2;
  if (high > NODES_ADDED_MAX) return undefined;
  let low = Math.floor(high / 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (enough(middle)) high = middle;
    else low = middle;
  }
  return alternative('more-nodes', option, level.from, 1, `${amount(level)} would fit with ${high} more ${high === 1 ? 'node' : 'nodes'} of ${shape.gpus} x ${shape.gpuType}. Add ${high === 1 ? 'it' : 'them'}.`);
}

/** Each added node fails by itself. */
function added(shape: Omit<FleetNode, 'nodeId' | 'failureDomain'>, count: number): readonly FleetNode[] {
  return Array.from({ length: count }, (_, index) => ({ ...shape, nodeId: `added-${index}`, failureDomain: `added-${index}` }));
}

function alternative(kind: FittingAlternative['kind'], { option, capacity }: CapacityOption, from: string, share: number, says: string): FittingAlternative {
  return { kind, share, from, gpuType: option.gpuType, precision: option.precision, replicas: option.parts.length, dollarsPerHour: capacity.dollarsPerHour, says };
}

function amount(level: ServiceLevel): string {
  return level.replicas > 0 ? countWords(level.replicas) : `${Math.round(promisedRate(level) * 100) / 100} requests/s`;
}

function hardware({ option, capacity }: CapacityOption): string {
  const gpus = Math.ceil(gpusOf(option) * 100) / 100;
  return `${countWords(option.parts.length)} on ${gpus} x ${option.gpuType} at ${option.precision}${capacity.dollarsPerHour === null ? '' : `, $${capacity.dollarsPerHour.toFixed(2)}/h`}`;
}
