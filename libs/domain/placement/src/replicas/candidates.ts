import type { PlacementRefusedV2 } from '@penstock/contract-events';
import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import { seatOnNode, type FoundSeat } from '../fleet/find-seat.js';
import { domainLimit, type FleetPart } from '../fleet/fleet-types.js';
import { compareText } from './compare-text.js';
import { excludeNode, shortage } from './exclusions.js';
import type { FragmentationMeter } from './fragmentation-meter.js';
import type { PlacementDemand, PlacementNode } from './placement-input.js';
import type { ReplicaWay } from './replica-ways.js';
import type { RunningFleet } from './running-fleet.js';

export type ExclusionCode = Extract<PlacementRefusedV2['code'], 'no_memory' | 'no_room' | 'not_allowed' | 'no_matching_accelerator' | 'no_engine'>;

export interface Excluded {
  readonly kind: 'excluded';
  readonly node: PlacementNode;
  readonly code: ExclusionCode;
  readonly reason: string;
}

/** The best choice of accelerators on one node; of a gang, what one member takes. */
export interface Eligible {
  readonly kind: 'eligible';
  readonly node: PlacementNode;
  readonly way: ReplicaWay;
  readonly seat: FoundSeat;
  readonly score: number;
  /** Replicas of the same endpoint on this node. */
  readonly siblings: number;
  readonly isWarm: boolean;
  /** More of the endpoint's replicas fail together with this node than should. */
  readonly isCrowded: boolean;
  /** Smallest free memory of one of the accelerators afterwards, in MiB. */
  readonly freeAfterMib: number;
}

export type Candidate = Excluded | Eligible;

/** What is the same for all nodes while one replica is looked at. */
export interface Assessment {
  readonly fleet: RunningFleet;
  readonly demand: PlacementDemand;
  readonly ways: readonly ReplicaWay[];
  /** Replicas of the endpoint by node and by failure domain, the one to be replaced left out. */
  readonly siblings: ReadonlyMap<string, number>;
  readonly inDomain: ReadonlyMap<string, number>;
}

/** Each replica of the same endpoint on a node is worth this much of worse fit. */
const SIBLING_MALUS = 0.05;

/** More than the limit of replicas in one failure domain is the last resort. */
const CROWDED_MALUS = 5;

/** Scores are told and compared in hundredths; below that, nodes are equal and the tie-breaks decide. */
const SCORE_STEPS = 100;

/** A node that has the artifacts is worth this much of worse fit: it saves a download. */
const WARM_BONUS = 0.25;

/** Where the type is left open, a GPU that fits is taken before the CPU. */
const GPU_BONUS = 1;

/** Each failed start on a node counts against it, up to the limit; it stays eligible when nothing else is. */
const FAILURE_MALUS = 2;
const FAILURES_COUNTED_MAX = 5;

/** The dollars of what is taken, against those of the dearest accelerator of the fleet. */
const DOLLAR_WEIGHT = 0.3;

/** A part pays this much of each GPU that it is the first on: others will fill the rest. */
const OPENING_SHARE = 0.35;

/** Looks at one node for one replica. */
export function assessNode(node: PlacementNode, about: Assessment): Candidate {
  const refused = excludeNode(node, about);
  if (refused !== undefined) return refused;
  let best: Eligible | undefined;
  for (const number of about.fleet.numbersOf.get(node.nodeId) ?? []) {
    for (const way of about.ways) {
      if (about.fleet.state.poolOf[number] !== way.pool) continue;
      const seat = seatOnNode(about.fleet.state, number, way.part, about.fleet.idleStarts);
      const eligible = seat === undefined ? undefined : scoreSeat(node, way, seat, about);
      if (eligible !== undefined && (best === undefined || compareEligible(eligible, best) < 0)) best = eligible;
    }
  }
  return best ?? { kind: 'excluded', node, ...shortage(node, about) };
}

/** Best first: score, then the node with fewer siblings, then untouched accelerators kept so, then ids. */
export function compareEligible(one: Eligible, other: Eligible): number {
  return (
    other.score - one.score ||
    one.siblings - other.siblings ||
    one.seat.opened - other.seat.opened ||
    compareText(one.node.nodeId, other.node.nodeId) ||
    (one.seat.gpus[0] ?? 0) - (other.seat.gpus[0] ?? 0)
  );
}

function scoreSeat(node: PlacementNode, way: ReplicaWay, seat: FoundSeat, about: Assessment): Eligible {
  const { demand, fleet, siblings: on, inDomain } = about;
  const siblings = on.get(node.nodeId) ?? 0;
  const isCrowded = fleet.domains > 1 && (inDomain.get(node.failureDomain) ?? 0) >= domainLimit(demand.wanted);
  // A second copy on the same node gains no availability, so artifacts there are no reason to prefer it.
  const isWarm = siblings === 0 && demand.warmNodeIds.has(node.nodeId);
  const failures = Math.min(demand.failuresByNode.get(node.nodeId) ?? 0, FAILURES_COUNTED_MAX);
  const { fit, freeAfterMib, share } = fitOf(way, seat, fleet);
  const pool = fleet.state.pools[way.pool];
  const dearest = Math.max(1e-9, ...fleet.state.pools.map(({ pricePerGpu }) => pricePerGpu));
  const dollars = ((share * seat.gpus.length + OPENING_SHARE * seat.opened) * (pool?.pricePerGpu ?? 0)) / dearest;
  const score =
    fit - DOLLAR_WEIGHT * dollars + (isWarm ? WARM_BONUS : 0) + (demand.acceleratorType === null && pool?.gpuType !== 'cpu' ? GPU_BONUS : 0) -
    siblings * SIBLING_MALUS - failures * FAILURE_MALUS - (isCrowded ? CROWDED_MALUS : 0);
  return { kind: 'eligible', node, way, seat, score: rounded(score), siblings, isWarm, isCrowded, freeAfterMib };
}

/** Nodes whose fragmentation is measured, the best ones by everything else first: measuring costs more than all the rest. */
export const FRAGMENTATION_MEASURED_MAX = 64;

/** Best first, with what each choice would fragment taken into account for the best of them. */
export function rank(eligible: readonly Eligible[], meter: FragmentationMeter): readonly Eligible[] {
  const sorted = [...eligible].sort(compareEligible);
  const measured = sorted.slice(0, FRAGMENTATION_MEASURED_MAX).map((one) => ({ ...one, score: rounded(one.score - meter.growth(partOfNode(one.way.part), one.seat)) }));
  return [...measured.sort(compareEligible), ...sorted.slice(FRAGMENTATION_MEASURED_MAX)];
}

function rounded(score: number): number {
  // Adding 0 makes a minus zero a plain one, as which it comes back from a snapshot.
  return Math.round(score * SCORE_STEPS) / SCORE_STEPS + 0;
}

/** What one member of a gang takes of its node. */
export function partOfNode(part: FleetPart): FleetPart {
  return part.nodes === 1 ? part : { ...part, accelerators: part.accelerators / part.nodes, nodes: 1, cpuMilli: part.cpuMilli / part.nodes, hostMemoryMib: part.hostMemoryMib / part.nodes };
}

/** How full it makes its accelerators, 1 at most, and the part of one that it takes. */
function fitOf({ part, pool: index }: ReplicaWay, seat: FoundSeat, { state }: RunningFleet): { readonly fit: number; readonly freeAfterMib: number; readonly share: number } {
  const pool = state.pools[index];
  const book = pool?.book;
  const gpu = seat.gpus[0] as number;
  if (part.migProfile !== null && book !== null && book !== undefined) {
    const shares = book.sharesOf(part.migProfile);
    const left = book.room(book.place(state.layout[gpu] as number, part.migProfile, seat.start ?? 0));
    return { fit: 1 - left / Math.max(1, book.room(0)), freeAfterMib: (book.profile(part.migProfile)?.usableMib ?? 0) - part.vramMib, share: Math.max(shares?.compute ?? 1, shares?.memory ?? 1) };
  }
  const vram = Math.max(pool?.vramMib ?? 1, 1e-9);
  const freeAfterMib = Math.min(...seat.gpus.map((one) => (state.vramFree[one] as number) - part.vramMib));
  const memoryLeft = freeAfterMib / vram;
  const computeLeft = ((state.computeFree[gpu] as number) - part.computeMilli) / WHOLE_ACCELERATOR_MILLI;
  const fit = part.computeMilli === 0 ? 1 - memoryLeft : 1 - (computeLeft + memoryLeft + Math.abs(computeLeft - memoryLeft)) / 2;
  return { fit, freeAfterMib, share: Math.max(part.computeMilli / WHOLE_ACCELERATOR_MILLI, part.vramMib / vram) };
}
