import { findSeat } from '../fleet/find-seat.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { FleetPart, FleetSeat, SeatedPart } from '../fleet/fleet-types.js';

/** A replica that holds something, as it stands in the fleet's state. */
export interface Holder {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly priority: number;
  readonly seated: SeatedPart;
  /** Dollars that its loss costs: requests under way that have to end, and a start elsewhere. */
  readonly moveDollars: number;
  /** Its end was asked for already: what it holds comes free by itself. */
  readonly isLeaving: boolean;
}

/** One way to seat what needs room: what it takes in one pool. */
export interface WantedWay {
  readonly pool: number;
  readonly part: FleetPart;
}

export interface PreemptionPlan {
  readonly way: WantedWay;
  /** Where it then sits. */
  readonly seat: FleetSeat;
  /** Whom to drain, in order of their ids. Empty when what is leaving already makes room. */
  readonly victims: readonly Holder[];
  readonly dollars: number;
}

/** Victims of one placement; work that needs more to give way waits instead. */
export const VICTIMS_MAX = 64;

/**
 * The least harm that makes room for one part: on each node, or over the fleet for a gang, lets go of holders by priority
 * and cost until the part has a seat, then takes back those that were not needed. Of all nodes the one whose worst victim has the
 * lowest priority wins, then the cheapest. Undefined when even all of them would not make room. `state` is as it was afterwards.
 */
export function chooseVictims(state: FleetState, ways: readonly WantedWay[], holders: readonly Holder[], isAllowed: (node: number) => boolean): PreemptionPlan | undefined {
  const leaving = holders.filter((holder) => holder.isLeaving);
  const others = holders.filter((holder) => !holder.isLeaving).sort(byHarm);
  for (const holder of leaving) state.release(holder.seated.part, holder.seated.seat);
  let best: PreemptionPlan | undefined;
  for (const way of ways) {
    const { pool, part } = way;
    const seat = findSeat(state, pool, part, isAllowed);
    if (seat !== undefined) {
      best = { way, seat, victims: [], dollars: 0 };
      break;
    }
    for (const group of part.nodes > 1 ? [others.filter((holder) => poolOf(state, holder) === pool)] : byNode(state, others, pool, isAllowed)) {
      const node = part.nodes > 1 ? undefined : nodeOf(group[0] as Holder);
      const plan = leastOf(state, way, group, (candidate) => (node === undefined || candidate === node) && isAllowed(candidate));
      if (plan !== undefined && (best === undefined || comparePlans(plan, best) < 0)) best = plan;
    }
  }
  for (const holder of leaving) state.take(holder.seated.part, holder.seated.seat);
  return best;
}

function leastOf(state: FleetState, way: WantedWay, group: readonly Holder[], isAllowed: (node: number) => boolean): PreemptionPlan | undefined {
  const gone: Holder[] = [];
  const find = (): FleetSeat | undefined => findSeat(state, way.pool, way.part, isAllowed);
  const fits = (): boolean => find() !== undefined;
  for (const holder of group) {
    if (gone.length >= VICTIMS_MAX || fits()) break;
    state.release(holder.seated.part, holder.seated.seat);
    gone.push(holder);
  }
  const isEnough = fits();
  const needed: Holder[] = [];
  // The most harmful ones are given back first.
  for (const holder of [...gone].reverse()) {
    state.take(holder.seated.part, holder.seated.seat);
    if (!isEnough || fits()) continue;
    state.release(holder.seated.part, holder.seated.seat);
    needed.push(holder);
  }
  const seat = find();
  for (const holder of needed) state.take(holder.seated.part, holder.seated.seat);
  if (!isEnough || needed.length === 0 || seat === undefined) return undefined;
  return { way, seat, victims: needed.sort((one, other) => (one.replicaId < other.replicaId ? -1 : 1)), dollars: needed.reduce((sum, { moveDollars }) => sum + moveDollars, 0) };
}

function byNode(state: FleetState, holders: readonly Holder[], pool: number, isAllowed: (node: number) => boolean): readonly (readonly Holder[])[] {
  const usable = holders.filter((holder) => poolOf(state, holder) === pool && isAllowed(nodeOf(holder)));
  return [...Map.groupBy(usable, nodeOf).values()];
}

const nodeOf = (holder: Holder): number => holder.seated.seat.nodes[0] ?? -1;

const poolOf = (state: FleetState, holder: Holder): number => state.poolOf[nodeOf(holder)] ?? -1;

function byHarm(one: Holder, other: Holder): number {
  return one.priority - other.priority || one.moveDollars - other.moveDollars || (one.replicaId < other.replicaId ? -1 : 1);
}

function comparePlans(one: PreemptionPlan, other: PreemptionPlan): number {
  return worstOf(one) - worstOf(other) || one.dollars - other.dollars || one.victims.length - other.victims.length;
}

function worstOf({ victims }: PreemptionPlan): number {
  return victims.reduce((worst, { priority }) => Math.max(worst, priority), Number.NEGATIVE_INFINITY);
}
