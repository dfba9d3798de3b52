import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { ResourceVector } from '../commitments/fair-share.js';
import { rankUnits, type EndpointClaim, type RankedUnit, type Ranking } from '../commitments/rank-units.js';
import { countOf } from './choose-drains.js';
import { NO_STANDING, type EndpointStanding, type PlacementDemand } from './placement-input.js';
import { waysOf } from './replica-ways.js';
import type { RunningFleet } from './running-fleet.js';

/** The missing replicas, one after the other in the order in which they are to be placed, and what that order follows from. */
export interface RankedDemands {
  next(): { readonly unit: RankedUnit; readonly demand: PlacementDemand; readonly claim: EndpointClaim } | undefined;
  readonly claims: ReadonlyMap<string, EndpointClaim>;
  readonly ranking: Ranking;
}

/** Demands that wait after failures want nothing now, and keep what they have. */
export function rankDemands(fleet: RunningFleet, demands: readonly PlacementDemand[], standings: ReadonlyMap<string, EndpointStanding>, isWaiting: (demand: PlacementDemand) => boolean): RankedDemands {
  const byId = new Map(demands.map((demand) => [demand.endpointId, demand]));
  const claims = new Map(demands.map((demand): readonly [string, EndpointClaim] => {
    const { tenantId, weight, floor, floorPriority } = standings.get(demand.endpointId) ?? NO_STANDING;
    const count = countOf(demand);
    return [demand.endpointId, { endpointId: demand.endpointId, tenantId, weight, floor: Math.min(floor, Math.max(demand.wanted, count)), floorPriority, use: useOf(fleet, demand), count, wanted: isWaiting(demand) ? count : demand.wanted }];
  }));
  const ranking = rankUnits([...claims.values()], totalOf(fleet));
  return {
    claims,
    ranking,
    next: () => {
      const unit = ranking.next();
      const demand = unit === undefined ? undefined : byId.get(unit.endpointId);
      const claim = unit === undefined ? undefined : claims.get(unit.endpointId);
      return unit === undefined || demand === undefined || claim === undefined ? undefined : { unit, demand, claim };
    },
  };
}

/** Compute, accelerator memory, CPU and host memory of one replica, by the first way that its hardware wishes admit. */
function useOf({ state }: RunningFleet, demand: PlacementDemand): ResourceVector {
  const [way] = waysOf(demand, state.pools);
  if (way === undefined) return [0, 0, 0, 0];
  const { part, pool } = way;
  const info = state.pools[pool];
  const shares = part.migProfile === null ? undefined : info?.book?.sharesOf(part.migProfile);
  const compute = shares === undefined ? part.computeMilli : shares.compute * WHOLE_ACCELERATOR_MILLI;
  const memory = shares === undefined ? part.vramMib : shares.memory * (info?.vramMib ?? 0);
  return [part.accelerators * compute, part.accelerators * memory, part.cpuMilli, part.hostMemoryMib];
}

function totalOf({ state }: RunningFleet): ResourceVector {
  const total = [0, 0, 0, 0];
  for (const [index, node] of state.nodes.entries()) {
    total[0] = (total[0] ?? 0) + node.gpus * WHOLE_ACCELERATOR_MILLI;
    total[1] = (total[1] ?? 0) + node.gpus * node.vramMib;
    // Several nodes of the ledger may be one machine.
    if (state.hostOf[index] !== index) continue;
    total[2] = (total[2] ?? 0) + node.cpuMilli;
    total[3] = (total[3] ?? 0) + node.hostMemoryMib;
  }
  return total;
}
