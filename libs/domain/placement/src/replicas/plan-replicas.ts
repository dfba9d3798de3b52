import type { PlacementRefusedV2, ReplicaPlacedV2 } from '@penstock/contract-events';
import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import { isFree } from '../fleet/find-seat.js';
import type { FleetPart, FleetSeat } from '../fleet/fleet-types.js';
import { assessNode, rank, type Assessment, type Candidate, type Eligible, type Excluded } from './candidates.js';
import { chooseDrains, countOf, unitsOf } from './choose-drains.js';
import { compareText } from './compare-text.js';
import { formatBytes } from './format-bytes.js';
import { FragmentationMeter } from './fragmentation-meter.js';
import { planCost, type PlanCost } from './plan-cost.js';
import { isMoving, planInstanceRoom, type PlannedMove } from './plan-moves.js';
import type { PlacedReplica, PlacementDemand, PlacementInput, PlacementNode } from './placement-input.js';
import type { PlacementPlan, PlannedDrain, PlannedPlacement } from './placement-plan.js';
import { CANDIDATES_TOLD_MAX, REASON_LENGTH_MAX, refuseForBackoff, refuseForHoles, refuseForSpace } from './refuse.js';
import { rankDemands } from './rank-demands.js';
import { acceleratorsOf, bytesOfEach, waysOf, type ReplicaWay } from './replica-ways.js';
import { RoomMaker, type MadeRoom } from './room-maker.js';
import { dollarsPerHour, MIB, RunningFleet } from './running-fleet.js';
import { START_FAILURES_TOLD_MIN } from './start-backoff.js';

/** Replicas that are moved off leaving nodes at a time: each needs room twice until its successor is ready. */
export const LEAVING_MOVES_MAX = 32;

/** So long before a node is taken back its replicas drain, whether their successors are ready or not. */
export const RECLAIM_DRAIN_MS = 30_000;

/** Room that nobody else of a plan may take. */
interface KeptRoom {
  readonly part: FleetPart;
  readonly seat: FleetSeat;
  readonly isPromised: boolean;
}

/**
 * Decides which replicas to place where, which to drain and what has to be refused, each with its reason, and how nodes that are
 * to become empty do so: a successor first, then the drain. First replicas of every endpoint come before second ones; among
 * those the largest comes first. Each goes where it fragments the fleet least and fits best. Nothing is given away twice.
 */
export class ReplicaPlanner {
  readonly fleet: RunningFleet;
  private readonly meter: FragmentationMeter;
  private readonly nodes: readonly PlacementNode[];
  private readonly placements: PlannedPlacement[] = [];
  private readonly refusals = new Map<string, PlacementRefusedV2>();
  /** Why nodes were left out, by what was asked for in vain: a plan only takes room, so that asking again is no use. */
  private readonly inVain = new Map<string, readonly Excluded[]>();

  constructor(private readonly input: PlacementInput) {
    this.fleet = new RunningFleet(input.nodes, input.holdings);
    this.meter = new FragmentationMeter(this.fleet, input.demands);
    this.nodes = [...input.nodes].sort((one, other) => compareText(one.nodeId, other.nodeId));
  }

  plan(): PlacementPlan {
    const { demands, nowMs } = this.input;
    const leaving = new Map(this.nodes.filter((node) => node.drainReason !== null || node.reclaimAtMs !== null).map((node) => [node.nodeId, node]));
    const drains = demands.flatMap((demand) => chooseDrains(demand, (nodeId) => leaving.has(nodeId)));
    const preempted = this.placeMissing(new Set(drains.map((drain) => drain.replicaId)));
    const overdue = this.leave(leaving, new Set(drains.map((drain) => drain.replicaId)));
    this.makeInstanceRoom();
    const waiting = demands.filter((demand) => isMissing(demand) && isWaiting(demand, nowMs));
    for (const demand of waiting) if (demand.backoff !== null && demand.backoff.failuresInRow >= START_FAILURES_TOLD_MIN) this.refusals.set(demand.endpointId, refuseForBackoff(demand, countOf(demand), demand.backoff));
    return {
      placements: this.placements,
      drains: [...drains, ...overdue.filter(({ replicaId }) => !preempted.some((drain) => drain.replicaId === replicaId)), ...preempted],
      refusals: [...this.refusals.values()].sort((one, other) => compareText(one.endpointId, other.endpointId)),
      retryAtMs: waiting.length === 0 ? null : Math.min(...waiting.map((demand) => demand.backoff?.retryAtMs ?? nowMs)),
    };
  }

  /** Places what is missing in its order; what finds no room may have some made for it. Returns who has to give way. */
  private placeMissing(drained: ReadonlySet<string>): readonly PlannedDrain[] {
    const ranked = rankDemands(this.fleet, this.input.demands, this.input.standings ?? new Map(), (demand) => isWaiting(demand, this.input.nowMs));
    const preempted: PlannedDrain[] = [];
    const kept: KeptRoom[] = [];
    let maker: RoomMaker | undefined;
    for (let next = ranked.next(); next !== undefined; next = ranked.next()) {
      const { unit, demand, claim } = next;
      // What is left waits for the next plan: one must not keep the service from hearing heartbeats.
      if (this.placements.length >= this.input.placementsMax) break;
      const isRefused = this.refusals.has(demand.endpointId);
      if (!isRefused && demand.profileHoles.length > 0) this.refusals.set(demand.endpointId, refuseForHoles(demand, this.placedOf(demand)));
      else if (!isRefused && this.placeOne(demand, null) !== undefined) {
        if (!unit.isPromised) ranked.ranking.account(claim, 1);
        continue;
      }
      if (demand.profileHoles.length > 0 || (isRefused && !unit.isPromised)) continue;
      maker ??= new RoomMaker(this.input, ranked, drained);
      const made = maker.makeRoom(unit, demand, claim, this.placements);
      if (made === undefined) {
        this.blameKept(demand, kept);
        continue;
      }
      preempted.push(...made.drains);
      kept.push({ ...this.keepFree(made), isPromised: unit.isPromised });
      const refusal = this.refusals.get(demand.endpointId);
      if (refusal !== undefined) this.refusals.set(demand.endpointId, { ...refusal, hint: 'room is being made for it: other replicas drain' });
    }
    return preempted;
  }

  /** Where a replica would have room but for what is kept for others, its refusal says so. */
  private blameKept(demand: PlacementDemand, kept: readonly KeptRoom[]): void {
    const refusal = this.refusals.get(demand.endpointId);
    if (refusal === undefined || kept.length === 0 || (refusal.code !== 'no_room' && refusal.code !== 'no_memory')) return;
    for (const { part, seat } of kept) this.fleet.state.release(part, seat);
    const about = this.assessment(demand, null);
    const wouldFit = this.nodes.filter((node) => assessNode(node, about).kind === 'eligible').length >= demand.rules.nodes;
    for (const { part, seat } of kept) this.fleet.state.take(part, seat);
    if (!wouldFit) return;
    const isPromised = kept.some((room) => room.isPromised);
    this.refusals.set(demand.endpointId, { ...refusal, code: isPromised ? 'reserved' : 'fair_share', reason: isPromised ? 'the room that there is, is kept for replicas that were promised' : 'the room that there is, is kept for tenants below their fair share' });
  }

  /** Nobody else of this plan takes room that is made for somebody. Returns what was taken. */
  private keepFree({ way: { part }, seat }: MadeRoom): Pick<KeptRoom, 'part' | 'seat'> {
    const { state } = this.fleet;
    const [gpu] = seat.gpus;
    const book = gpu === undefined ? null : state.pools[state.poolOfGpu(gpu)]?.book;
    const isPlaceable = part.migProfile === null || (gpu !== undefined && book !== null && book !== undefined && book.canPlace(state.layout[gpu] as number, part.migProfile, seat.start ?? 0));
    const taken = isPlaceable ? part : { ...part, migProfile: null, computeMilli: WHOLE_ACCELERATOR_MILLI, vramMib: 0 };
    state.take(taken, seat);
    return { part: taken, seat };
  }

  /** Takes the seat of a successor, where it is free. */
  move({ demand, replica, way, seat, why }: PlannedMove): PlannedPlacement | undefined {
    const [gpu] = seat.gpus;
    const node = gpu === undefined ? undefined : this.fleet.ownerOf(gpu);
    const { state } = this.fleet;
    if (gpu === undefined || node === undefined || !state.hostFits(state.nodeOf[gpu] as number, way.part) || !isFree(state, way.part, seat)) return undefined;
    const to = `${way.part.migProfile === null ? '' : `${way.part.migProfile} at slice ${seat.start ?? 0} of `}${this.fleet.acceleratorOf(gpu).acceleratorId} of ${node.hostname}`;
    return this.seat(demand, way, seat, replica.replicaId, { summary: `${replica.replicaId} moves to ${to} and ${why}`, candidates: [{ nodeId: node.nodeId, score: null, excluded: null }] });
  }

  /** What the fleet with this plan costs, and the bound; null where nothing has a price. */
  cost(): PlanCost | null {
    return planCost(this.fleet, this.input.demands.map((demand) => ({ demand, replicas: this.placedOf(demand) })));
  }

  /** For the first demand that lacks slices: moves that make room for its instance, if they are worth it and nothing moves yet. */
  private makeInstanceRoom(): void {
    if (isMoving(this.input) || this.placements.some((placement) => placement.replaces !== null)) return;
    for (const demand of this.input.demands) {
      const refusal = this.refusals.get(demand.endpointId);
      const way = refusal?.code === 'no_room' ? waysOf(demand, this.fleet.state.pools).find(({ part }) => part.migProfile !== null) : undefined;
      if (refusal === undefined || way === undefined) continue;
      const { moves, refusal: why } = planInstanceRoom(this.input, this.fleet, way);
      if (why !== null) this.refusals.set(demand.endpointId, { ...refusal, hint: why.slice(0, REASON_LENGTH_MAX) });
      for (const move of moves) this.move(move);
      if (moves.length > 0) return;
    }
  }

  /** Finds a place for one replica of the demand, takes it, and says why; `replacing` is the replica in whose place it comes. */
  placeOne(demand: PlacementDemand, replacing: { readonly replica: PlacedReplica; readonly why: string } | null): PlannedPlacement | undefined {
    const shape = JSON.stringify([demand.engine, demand.acceleratorType, demand.acceleratorCount, demand.memoryBytes, demand.rules]);
    const known = this.inVain.get(shape);
    if (known !== undefined) return this.refuse(demand, known, replacing?.why);
    const about = this.assessment(demand, replacing?.replica ?? null);
    const candidates = this.nodes.map((node) => assessNode(node, about));
    const eligible = rank(candidates.filter((candidate): candidate is Eligible => candidate.kind === 'eligible'), this.meter);
    const excluded = candidates.filter((candidate): candidate is Excluded => candidate.kind === 'excluded');
    const chosen = chooseMembers(eligible, demand.rules.nodes);
    const best = chosen[0];
    if (best === undefined) {
      const why = [...excluded, ...tooFew(eligible, demand)];
      this.inVain.set(shape, why);
      return this.refuse(demand, why, replacing?.why);
    }
    const seat: FleetSeat = { gpus: chosen.flatMap((one) => one.seat.gpus), nodes: chosen.flatMap((one) => one.seat.nodes), start: best.seat.start };
    const summary = replacing === null ? summaryOf(chosen, eligible.length, this.fleet) : `${replacing.why}; ${summaryOf(chosen, eligible.length, this.fleet)}`;
    return this.seat(demand, best.way, seat, replacing?.replica.replicaId ?? null, { summary, candidates: [...eligible, ...excluded].slice(0, CANDIDATES_TOLD_MAX).map(tell) });
  }

  /** Takes a seat that is known to be free. */
  seat(demand: PlacementDemand, way: ReplicaWay, seat: FleetSeat, replaces: string | null, reason: Omit<ReplicaPlacedV2['reason'], 'plan'>): PlannedPlacement {
    const { part } = way;
    this.fleet.state.take(part, seat);
    const placement: PlannedPlacement = {
      endpointId: demand.endpointId,
      modelVersionId: demand.modelVersionId,
      members: this.fleet.membersOf(seat).map((member) => ({ nodeId: member.nodeId, acceleratorIds: [...member.acceleratorIds] })),
      reservedBytes: bytesOfEach(demand) * acceleratorsOf(demand),
      computeMilli: part.computeMilli,
      cpuMilli: Math.round(part.cpuMilli / part.nodes),
      hostMemoryBytes: Math.round((part.hostMemoryMib * MIB) / part.nodes),
      mig: part.migProfile === null || seat.start === null ? null : { profile: part.migProfile, start: seat.start },
      option: this.optionOf(demand, way, seat),
      replaces,
      reason: { summary: reason.summary.slice(0, REASON_LENGTH_MAX), candidates: reason.candidates, plan: null },
    };
    this.placements.push(placement);
    return placement;
  }

  private refuse(demand: PlacementDemand, excluded: readonly Excluded[], why: string | undefined): undefined {
    const refusal = refuseForSpace(demand, this.placedOf(demand), excluded, this.fleet);
    this.refusals.set(demand.endpointId, why === undefined ? refusal : { ...refusal, reason: `${why}: ${refusal.reason}`.slice(0, REASON_LENGTH_MAX) });
  }

  private assessment(demand: PlacementDemand, leaving: PlacedReplica | null): Assessment {
    const siblings = new Map<string, number>();
    const inDomain = new Map<string, number>();
    const domainOf = new Map(this.nodes.map((node) => [node.nodeId, node.failureDomain]));
    const others = [...demand.replicas.filter((replica) => replica !== leaving), ...demand.pending].map(({ nodeIds }) => nodeIds);
    const planned = this.placements.filter((placement) => placement.endpointId === demand.endpointId).map(({ members }) => members.map((member) => member.nodeId));
    for (const nodeIds of [...others, ...planned]) {
      for (const nodeId of new Set(nodeIds)) siblings.set(nodeId, (siblings.get(nodeId) ?? 0) + 1);
      for (const domain of new Set(nodeIds.flatMap((nodeId) => domainOf.get(nodeId) ?? []))) inDomain.set(domain, (inDomain.get(domain) ?? 0) + 1);
    }
    return { fleet: this.fleet, demand, ways: waysOf(demand, this.fleet.state.pools), siblings, inDomain };
  }

  /** Successors for the replicas on nodes that are to become empty, and the drains of those whose time is over. */
  private leave(leaving: ReadonlyMap<string, PlacementNode>, drained: ReadonlySet<string>): readonly PlannedDrain[] {
    const overdue: PlannedDrain[] = [];
    if (leaving.size === 0) return overdue;
    let moves = 0;
    for (const demand of this.input.demands) {
      for (const { replica, successor } of unitsOf(demand)) {
        const node = replica.nodeIds.flatMap((nodeId) => leaving.get(nodeId) ?? [])[0];
        if (node === undefined || drained.has(replica.replicaId)) continue;
        const why = node.drainReason === null ? `${node.hostname} is taken back by its owner` : `${node.hostname} drains: ${node.drainReason}`;
        if (node.reclaimAtMs !== null && this.input.nowMs >= node.reclaimAtMs - RECLAIM_DRAIN_MS) overdue.push({ endpointId: demand.endpointId, replicaId: replica.replicaId, reason: why });
        const isUnderWay = successor !== undefined || demand.pending.some(({ replaces }) => replaces === replica.replicaId);
        if (isUnderWay || moves >= LEAVING_MOVES_MAX || isWaiting(demand, this.input.nowMs) || this.refusals.has(demand.endpointId)) continue;
        if (this.placeOne(demand, { replica, why }) !== undefined) moves += 1;
      }
    }
    return overdue;
  }

  private optionOf(demand: PlacementDemand, { part, pool }: ReplicaWay, seat: FleetSeat): PlannedPlacement['option'] {
    const [gpu] = seat.gpus;
    const price = gpu === undefined ? null : dollarsPerHour(this.fleet.ownerOf(gpu), this.fleet.acceleratorOf(gpu));
    const info = this.fleet.state.pools[pool];
    const shares = part.migProfile === null ? undefined : info?.book?.sharesOf(part.migProfile);
    const share = shares === undefined ? Math.max(part.computeMilli / WHOLE_ACCELERATOR_MILLI, part.vramMib / Math.max(1e-9, info?.vramMib ?? 1)) : Math.max(shares.compute, shares.memory);
    return { precision: demand.precision, market: info?.market ?? 'on_demand', dollarsPerHour: price === null ? null : price * Math.min(1, share) * seat.gpus.length };
  }

  private placedOf(demand: PlacementDemand): number {
    return countOf(demand) + this.placements.filter((placement) => placement.endpointId === demand.endpointId && placement.replaces === null).length;
  }
}

/** The plan for a fleet as it is; see {@link ReplicaPlanner}. */
export function planReplicas(input: PlacementInput): PlacementPlan {
  return new ReplicaPlanner(input).plan();
}

function isMissing(demand: PlacementDemand): boolean {
  return countOf(demand) < demand.wanted;
}

function isWaiting(demand: PlacementDemand, nowMs: number): boolean {
  return demand.backoff !== null && demand.backoff.retryAtMs > nowMs;
}

/** The best node, or for a gang the best ones of one pool, all or none. */
function chooseMembers(eligible: readonly Eligible[], nodes: number): readonly Eligible[] {
  if (nodes === 1) return eligible.slice(0, 1);
  for (const first of eligible) {
    const members = eligible.filter((one) => one.way.pool === first.way.pool).slice(0, nodes);
    if (members.length === nodes) return members;
  }
  return [];
}

/** Nodes that would do, but are too few for a gang. */
function tooFew(eligible: readonly Eligible[], { rules }: PlacementDemand): readonly Excluded[] {
  return eligible.map(({ node }) => ({ kind: 'excluded', node, code: 'no_room', reason: `it has room, but fewer than ${rules.nodes} nodes of its kind have` }));
}

function tell(candidate: Candidate): ReplicaPlacedV2['reason']['candidates'][number] {
  return candidate.kind === 'eligible'
    ? { nodeId: candidate.node.nodeId, score: candidate.score, excluded: null }
    : { nodeId: candidate.node.nodeId, score: null, excluded: candidate.reason.slice(0, 500) };
}

function summaryOf(chosen: readonly Eligible[], eligibleCount: number, fleet: RunningFleet): string {
  const best = chosen[0] as Eligible;
  const where = chosen.map(({ seat, node }) => `${seat.gpus.map((gpu) => fleet.acceleratorOf(gpu).acceleratorId).join(', ')} of ${node.hostname}`).join(' and ');
  const { migProfile } = best.way.part;
  const left = migProfile === null ? `${formatBytes(best.freeAfterMib * MIB)} stay free on ${where}` : `${migProfile} at slice ${best.seat.start ?? 0} of ${where}`;
  const notes = [best.isWarm ? '; the node ran this model version before' : '', best.isCrowded ? '; no other failure domain has room' : ''].join('');
  return `${eligibleCount === chosen.length ? 'the only node that fits' : `best fit of ${eligibleCount} nodes`}: ${left}${notes}`.slice(0, REASON_LENGTH_MAX);
}
