import type { PlacementRefusedV2 } from '@penstock/contract-events';
import { shareOf, type Capacity } from './capacity.js';
import { formatBytes } from './format-bytes.js';
import type { PlacementAccelerator, PlacementDemand, PlacementNode } from './placement-input.js';

export type ExclusionCode = Extract<PlacementRefusedV2['code'], 'no_memory' | 'no_matching_accelerator' | 'no_engine'>;

export interface Excluded {
  readonly kind: 'excluded';
  readonly node: PlacementNode;
  readonly code: ExclusionCode;
  readonly reason: string;
}

/** The best choice of accelerators on one node. */
export interface Eligible {
  readonly kind: 'eligible';
  readonly node: PlacementNode;
  readonly accelerators: readonly PlacementAccelerator[];
  readonly score: number;
  /** Replicas of the same endpoint on this node. */
  readonly siblings: number;
  /** Wholly free accelerators that the choice would break. */
  readonly broken: number;
  readonly isWarm: boolean;
  /** Smallest free memory of one of the accelerators afterwards. */
  readonly freeAfterBytes: number;
}

export type Candidate = Excluded | Eligible;

/** Each replica of the same endpoint on a node is worth this much of worse fit: small models spread, large ones pack. */
const SIBLING_MALUS = 0.05;

/** Scores are told and compared in hundredths; below that, nodes are equal and the tie-breaks decide. */
const SCORE_STEPS = 100;

/** A node that has the artifacts is worth this much of worse fit: it saves a download. */
const WARM_BONUS = 0.25;

/** Where the type is left open, a GPU that fits is taken before the CPU. */
const GPU_BONUS = 1;

/** Each failed start on a node counts against it, up to the limit; it stays eligible when nothing else is. */
const FAILURE_MALUS = 2;
const FAILURES_COUNTED_MAX = 5;

/** Looks at one node for one replica. */
export function assessNode(node: PlacementNode, demand: PlacementDemand, capacity: Capacity, siblings: number): Candidate {
  if (!node.engines.some((engine) => engine.kind === demand.engine)) {
    return { kind: 'excluded', node, code: 'no_engine', reason: `${demand.engine} is not installed` };
  }
  const groups = acceleratorGroups(node, demand);
  if (groups.length === 0) return { kind: 'excluded', node, code: 'no_matching_accelerator', reason: mismatch(demand) };
  const share = shareOf(demand.memoryBytes, demand.acceleratorCount);
  let best: Eligible | undefined;
  for (const group of groups) {
    const chosen = tightest(node, group, share, demand.acceleratorCount, capacity);
    if (chosen === undefined) continue;
    const eligible = scoreChoice(node, chosen, share, demand, capacity, siblings);
    if (best === undefined || compareEligible(eligible, best) < 0) best = eligible;
  }
  if (best !== undefined) return best;
  return { kind: 'excluded', node, code: 'no_memory', reason: tooFull(node, groups, demand, capacity) };
}

/** Best first: score, then the node with fewer siblings, then whole accelerators kept whole, then ids. */
export function compareEligible(one: Eligible, other: Eligible): number {
  return (
    other.score - one.score ||
    one.siblings - other.siblings ||
    one.broken - other.broken ||
    compareText(one.node.nodeId, other.node.nodeId) ||
    compareText(firstId(one), firstId(other))
  );
}

export function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function firstId(eligible: Eligible): string {
  return eligible.accelerators[0]?.acceleratorId ?? '';
}

/** Accelerators of one type that are enough in number; one group for each type that the demand allows. */
function acceleratorGroups(node: PlacementNode, demand: PlacementDemand): readonly (readonly PlacementAccelerator[])[] {
  const byType = new Map<string, PlacementAccelerator[]>();
  for (const accelerator of node.accelerators) {
    if (demand.acceleratorType !== null && accelerator.type !== demand.acceleratorType) continue;
    byType.set(accelerator.type, [...(byType.get(accelerator.type) ?? []), accelerator]);
  }
  return [...byType.values()].filter((group) => group.length >= demand.acceleratorCount);
}

/** The `count` accelerators with the least free memory that still fit; undefined when there are not enough. */
function tightest(node: PlacementNode, group: readonly PlacementAccelerator[], share: number, count: number, capacity: Capacity): readonly PlacementAccelerator[] | undefined {
  const fitting = group.filter((accelerator) => capacity.freeBytes(node, accelerator) >= share);
  if (fitting.length < count) return undefined;
  return fitting
    .sort((a, b) => capacity.freeBytes(node, a) - capacity.freeBytes(node, b) || compareText(a.acceleratorId, b.acceleratorId))
    .slice(0, count);
}

function scoreChoice(node: PlacementNode, accelerators: readonly PlacementAccelerator[], share: number, demand: PlacementDemand, capacity: Capacity, siblings: number): Eligible {
  let fit = 0;
  let broken = 0;
  let freeAfterBytes = Number.POSITIVE_INFINITY;
  for (const accelerator of accelerators) {
    const freeAfter = capacity.freeBytes(node, accelerator) - share;
    fit += accelerator.memoryBytes === 0 ? 1 : 1 - freeAfter / accelerator.memoryBytes;
    if (capacity.usedBytes(node, accelerator) === 0) broken += 1;
    freeAfterBytes = Math.min(freeAfterBytes, freeAfter);
  }
  // A second copy on the same node gains no availability, so artifacts there are no reason to prefer it.
  const isWarm = siblings === 0 && demand.warmNodeIds.has(node.nodeId);
  const failures = Math.min(demand.failuresByNode.get(node.nodeId) ?? 0, FAILURES_COUNTED_MAX);
  const onGpu = demand.acceleratorType === null && accelerators.some((accelerator) => accelerator.type !== 'cpu');
  const score = fit / accelerators.length + (isWarm ? WARM_BONUS : 0) + (onGpu ? GPU_BONUS : 0) - siblings * SIBLING_MALUS - failures * FAILURE_MALUS;
  return { kind: 'eligible', node, accelerators, score: Math.round(score * SCORE_STEPS) / SCORE_STEPS, siblings, broken, isWarm, freeAfterBytes };
}

function mismatch(demand: PlacementDemand): string {
  const type = demand.acceleratorType ?? 'accelerator';
  return demand.acceleratorCount === 1 ? `no ${type}` : `fewer than ${demand.acceleratorCount} of one type: ${type}`;
}

function tooFull(node: PlacementNode, groups: readonly (readonly PlacementAccelerator[])[], demand: PlacementDemand, capacity: Capacity): string {
  const free = Math.max(...groups.flat().map((accelerator) => capacity.freeBytes(node, accelerator)));
  const wanted = formatBytes(shareOf(demand.memoryBytes, demand.acceleratorCount));
  return `${wanted} wanted on ${demand.acceleratorCount === 1 ? 'one accelerator' : `each of ${demand.acceleratorCount} accelerators`}, at most ${formatBytes(free)} free on one`;
}
