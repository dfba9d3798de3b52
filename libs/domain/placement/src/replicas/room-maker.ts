import { chooseVictims, type Holder } from '../commitments/choose-victims.js';
import { mayPreempt, mayPreemptAll } from '../commitments/may-preempt.js';
import type { EndpointClaim, RankedUnit } from '../commitments/rank-units.js';
import { dispensableFirst, unitsOf } from './choose-drains.js';
import { closedBecause } from './exclusions.js';
import { NO_STANDING, type EndpointStanding, type Holding, type PlacementDemand, type PlacementInput } from './placement-input.js';
import type { PlannedDrain, PlannedPlacement } from './placement-plan.js';
import type { RankedDemands } from './rank-demands.js';
import { waysOf, type ReplicaWay } from './replica-ways.js';
import { RunningFleet } from './running-fleet.js';
import type { FleetSeat } from '../fleet/fleet-types.js';

/** Replicas that get room made for them in one plan; the next plan goes on. */
export const ROOMS_MADE_MAX = 32;

/** Dollars of one request that a drain has to wait for, so that busy replicas are the last of their kind to go. */
const DOLLARS_PER_RUNNING = 0.001;
/** Hours that a start elsewhere takes, and the price of an accelerator that has none. */
const START_HOURS = 1 / 30;
const DOLLARS_ASSUMED = 1;

/** Room that will be there once what drains is gone: nobody else may take it until then. */
export interface MadeRoom {
  readonly drains: readonly PlannedDrain[];
  readonly way: ReplicaWay;
  readonly seat: FleetSeat;
}

/**
 * Finds room for what found none: for promised replicas from anything that was not promised, for others from tenants above
 * their fair share. It looks at the fleet as it will be once all that drains is gone, and drains no more than that leaves open.
 */
export class RoomMaker {
  private readonly after: RunningFleet;
  private readonly holders: Holder[];
  private roomsMade = 0;
  private placed = 0;

  /** `drained` are replicas that this very plan drains for other reasons. */
  constructor(input: PlacementInput, private readonly ranked: RankedDemands, drained: ReadonlySet<string>) {
    const staying = input.holdings.filter(({ replicaId, isLeaving }) => isLeaving !== true && !drained.has(replicaId));
    this.after = new RunningFleet(input.nodes, staying);
    this.holders = dispensable(input, this.after, staying, drained);
  }

  /** Undefined where nothing may give way. `placements` are those of this plan so far. */
  makeRoom(unit: RankedUnit, demand: PlacementDemand, claim: EndpointClaim, placements: readonly PlannedPlacement[]): MadeRoom | undefined {
    for (; this.placed < placements.length; this.placed += 1) this.hold(placements[this.placed] as PlannedPlacement);
    const { state } = this.after;
    const { ranking } = this.ranked;
    // Room that comes free without anybody more giving way is kept however much is under way, or somebody else slips in.
    const victims = this.roomsMade >= ROOMS_MADE_MAX ? [] : this.holders.filter((holder) => {
      const victim = this.ranked.claims.get(holder.endpointId);
      return victim !== undefined && mayPreempt(unit, claim, victim, ranking);
    });
    const isAllowed = (node: number): boolean => {
      const owner = this.after.owners[node];
      return owner !== undefined && closedBecause(owner, demand) === undefined && owner.engines.some(({ kind }) => kind === demand.engine);
    };
    const plan = chooseVictims(state, waysOf(demand, state.pools), victims, isAllowed);
    if (plan === undefined) return undefined;
    const losers = plan.victims.flatMap((victim) => this.ranked.claims.get(victim.endpointId) ?? []);
    if (!unit.isPromised && !mayPreemptAll(claim, losers, ranking)) return undefined;
    if (losers.length > 0) this.roomsMade += 1;
    for (const loser of losers) ranking.account(loser, -1);
    if (!unit.isPromised) ranking.account(claim, 1);
    for (const { replicaId, seated } of plan.victims) {
      state.release(seated.part, seated.seat);
      this.holders.splice(this.holders.findIndex((holder) => holder.replicaId === replicaId), 1);
    }
    state.take(plan.way.part, plan.seat);
    const why = unit.isPromised ? `it gives way to a promised replica of ${demand.endpointId}` : `it gives way to ${demand.endpointId}, whose tenant is below its fair share`;
    return { way: plan.way, seat: plan.seat, drains: plan.victims.map(({ endpointId, replicaId }) => ({ endpointId, replicaId, reason: why })) };
  }

  private hold(placement: PlannedPlacement): void {
    const found = this.after.seatOf({ ...placement, replicaId: '' });
    if (found !== undefined) this.after.state.take(found.part, found.seat);
  }
}

/** Replicas above the floor of each endpoint, as many as those are: who is not ready, little used and young first. */
function dispensable(input: PlacementInput, fleet: RunningFleet, staying: readonly Holding[], drained: ReadonlySet<string>): Holder[] {
  const holdings = new Map(staying.map((holding) => [holding.replicaId, holding]));
  return input.demands.flatMap((demand) => {
    const standing = input.standings?.get(demand.endpointId) ?? NO_STANDING;
    const units = unitsOf(demand).filter(({ replica, successor }) => successor === undefined && !drained.has(replica.replicaId));
    const spare = units.length - standing.floor;
    if (spare <= 0) return [];
    return [...units].sort((one, other) => dispensableFirst(one, other, () => false)).slice(0, spare).flatMap(({ replica }) => holderOf(fleet, demand, standing, replica.running ?? 0, holdings.get(replica.replicaId)) ?? []);
  });
}

function holderOf(fleet: RunningFleet, { endpointId }: PlacementDemand, { priority }: EndpointStanding, running: number, holding: Holding | undefined): Holder | undefined {
  const seated = holding === undefined ? undefined : fleet.seatOf(holding);
  if (holding === undefined || seated === undefined) return undefined;
  const node = fleet.state.nodes[seated.seat.nodes[0] ?? -1];
  const perHour = (node?.pricePerGpu || DOLLARS_ASSUMED) * seated.part.accelerators;
  return { replicaId: holding.replicaId, endpointId, priority, seated, isLeaving: false, moveDollars: perHour * START_HOURS + running * DOLLARS_PER_RUNNING };
}
