import type { PlacementRefusedV2, ReplicaPlacedV2 } from '@penstock/contract-events';
import { assessNode, compareEligible, compareText, type Candidate, type Eligible, type Excluded, type ExclusionCode } from './candidates.js';
import { Capacity, shareOf } from './capacity.js';
import { chooseDrains } from './choose-drains.js';
import { formatBytes } from './format-bytes.js';
import type { PlacementDemand, PlacementInput } from './placement-input.js';
import type { PlacementPlan, PlannedPlacement } from './placement-plan.js';
import { START_FAILURES_TOLD_MIN } from './start-backoff.js';

/** More candidates than this are not listed in a reason; the best ones are. */
const CANDIDATES_TOLD_MAX = 100;

const REASON_LENGTH_MAX = 1_000;

/**
 * Decides which replicas to place where, which to drain and what has to be refused, each with its reason.
 * First replicas of every endpoint come before second ones; among those the largest comes first, and goes where it
 * leaves the least memory free (best-fit decreasing). Memory is never given away twice.
 */
export function planPlacement(input: PlacementInput): PlacementPlan {
  const capacity = new Capacity(input.nodes, input.reservations);
  const placements: PlannedPlacement[] = [];
  const refusals: PlacementRefusedV2[] = [];
  const refused = new Set<string>();
  for (const unit of missingUnits(input)) {
    if (refused.has(unit.demand.endpointId)) continue;
    const outcome = placeOne(unit.demand, capacity, placements);
    if (outcome.kind === 'placed') {
      placements.push(outcome.placement);
      for (const member of outcome.placement.members) capacity.reserve({ ...member, reservedBytes: outcome.placement.reservedBytes });
    } else {
      refused.add(unit.demand.endpointId);
      refusals.push(outcome.refusal);
    }
  }
  const waiting = input.demands.filter((demand) => isMissing(demand) && isWaiting(demand, input.nowMs));
  for (const demand of waiting) if (demand.backoff !== null && demand.backoff.failuresInRow >= START_FAILURES_TOLD_MIN) refusals.push(refuseForBackoff(demand, demand.backoff));
  return {
    placements,
    drains: input.demands.flatMap(chooseDrains),
    refusals,
    retryAtMs: waiting.length === 0 ? null : Math.min(...waiting.map((demand) => demand.backoff?.retryAtMs ?? input.nowMs)),
  };
}

function countOf(demand: PlacementDemand): number {
  return demand.replicas.length + demand.pendingNodeIds.length;
}

function isMissing(demand: PlacementDemand): boolean {
  return countOf(demand) < demand.wanted;
}

function isWaiting(demand: PlacementDemand, nowMs: number): boolean {
  return demand.backoff !== null && demand.backoff.retryAtMs > nowMs;
}

interface Unit {
  readonly demand: PlacementDemand;
  /** Which replica of its endpoint it is, from 0. */
  readonly ordinal: number;
}

function missingUnits(input: PlacementInput): readonly Unit[] {
  const units: Unit[] = [];
  for (const demand of input.demands) {
    if (isWaiting(demand, input.nowMs)) continue;
    for (let ordinal = countOf(demand); ordinal < demand.wanted; ordinal += 1) units.push({ demand, ordinal });
  }
  return units.sort((one, other) =>
    one.ordinal - other.ordinal ||
    shareOf(other.demand.memoryBytes, other.demand.acceleratorCount) - shareOf(one.demand.memoryBytes, one.demand.acceleratorCount) ||
    compareText(one.demand.endpointId, other.demand.endpointId));
}

type UnitOutcome = { readonly kind: 'placed'; readonly placement: PlannedPlacement } | { readonly kind: 'refused'; readonly refusal: PlacementRefusedV2 };

function placeOne(demand: PlacementDemand, capacity: Capacity, planned: readonly PlannedPlacement[]): UnitOutcome {
  const candidates = capacity.nodes.map((node) => assessNode(node, demand, capacity, siblingsOn(node.nodeId, demand, planned)));
  const eligible = candidates.filter((candidate): candidate is Eligible => candidate.kind === 'eligible').sort(compareEligible);
  const excluded = candidates.filter((candidate): candidate is Excluded => candidate.kind === 'excluded').sort((a, b) => compareText(a.node.nodeId, b.node.nodeId));
  const best = eligible[0];
  if (best === undefined) return { kind: 'refused', refusal: refuseForSpace(demand, excluded, planned) };
  const { endpointId, modelVersionId, acceleratorCount } = demand;
  return {
    kind: 'placed',
    placement: {
      endpointId,
      modelVersionId,
      members: [{ nodeId: best.node.nodeId, acceleratorIds: best.accelerators.map((accelerator) => accelerator.acceleratorId) }],
      computeMilli: 0,
      cpuMilli: 0,
      hostMemoryBytes: 0,
      mig: null,
      option: { precision: null, market: 'on_demand', dollarsPerHour: null },
      replaces: null,
      reservedBytes: shareOf(demand.memoryBytes, acceleratorCount) * acceleratorCount,
      reason: { summary: summaryOf(best, eligible.length), candidates: [...eligible, ...excluded].slice(0, CANDIDATES_TOLD_MAX).map(tell), plan: null },
    },
  };
}

function siblingsOn(nodeId: string, demand: PlacementDemand, planned: readonly PlannedPlacement[]): number {
  return (
    demand.replicas.filter((replica) => replica.nodeId === nodeId).length +
    demand.pendingNodeIds.filter((pending) => pending === nodeId).length +
    planned.filter((placement) => placement.endpointId === demand.endpointId && placement.members[0]?.nodeId === nodeId).length
  );
}

function tell(candidate: Candidate): ReplicaPlacedV2['reason']['candidates'][number] {
  return candidate.kind === 'eligible'
    ? { nodeId: candidate.node.nodeId, score: candidate.score, excluded: null }
    : { nodeId: candidate.node.nodeId, score: null, excluded: candidate.reason };
}

function summaryOf(best: Eligible, eligibleCount: number): string {
  const ids = best.accelerators.map((accelerator) => accelerator.acceleratorId).join(', ');
  const warm = best.isWarm ? '; the node ran this model version before' : '';
  const among = eligibleCount === 1 ? 'the only node that fits' : `best fit of ${eligibleCount} nodes`;
  return `${among}: ${formatBytes(best.freeAfterBytes)} stay free on ${ids} of ${best.node.hostname}${warm}`.slice(0, REASON_LENGTH_MAX);
}

function refuseForSpace(demand: PlacementDemand, excluded: readonly Excluded[], planned: readonly PlannedPlacement[]): PlacementRefusedV2 {
  const placed = countOf(demand) + planned.filter((placement) => placement.endpointId === demand.endpointId).length;
  const common = { endpointId: demand.endpointId, wantedReplicas: demand.wanted, placedReplicas: placed, hint: null };
  const code = nearestMiss(excluded);
  if (code === undefined) return { ...common, code: 'no_node', reason: 'no node is up: start an agent', candidates: [] };
  const candidates = excluded.slice(0, CANDIDATES_TOLD_MAX).map(({ node, reason }) => ({ nodeId: node.nodeId, excluded: reason }));
  return { ...common, code, reason: REFUSAL_REASONS[code](demand), candidates };
}

/** The exclusion that came closest to a placement: too little memory is nearer than a missing engine. */
function nearestMiss(excluded: readonly Excluded[]): ExclusionCode | undefined {
  return (['no_memory', 'no_matching_accelerator', 'no_engine'] as const).find((code) => excluded.some((candidate) => candidate.code === code));
}

// These texts hold no figure that changes by itself, so that a refusal reads the same until something changes.
const REFUSAL_REASONS: Readonly<Record<ExclusionCode, (demand: PlacementDemand) => string>> = {
  no_memory: (demand) => `no accelerator has ${formatBytes(shareOf(demand.memoryBytes, demand.acceleratorCount))} free: add a node, or lower slots, context or replicas`,
  no_matching_accelerator: (demand) => `no node has ${demand.acceleratorCount} of type ${demand.acceleratorType ?? 'any'}: add one, or change the endpoint's hardware`,
  no_engine: (demand) => `no node has the engine ${demand.engine}: install it on a node`,
};

function refuseForBackoff(demand: PlacementDemand, backoff: NonNullable<PlacementDemand['backoff']>): PlacementRefusedV2 {
  return {
    endpointId: demand.endpointId,
    wantedReplicas: demand.wanted,
    placedReplicas: countOf(demand),
    code: 'start_backoff',
    reason: `${backoff.failuresInRow} starts failed in a row; the last one: ${backoff.lastFailure}`.slice(0, REASON_LENGTH_MAX),
    candidates: [],
    hint: null,
  };
}
