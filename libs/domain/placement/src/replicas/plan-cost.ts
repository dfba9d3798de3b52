import { findPrices, usesOf } from '../fleet/fleet-prices.js';
import type { FleetDemand } from '../fleet/fleet-types.js';
import type { PlacementDemand } from './placement-input.js';
import { waysOf } from './replica-ways.js';
import type { RunningFleet } from './running-fleet.js';

/** Dollars per hour of the accelerators in use, and what no plan costs less than. */
export interface PlanCost {
  readonly dollarsPerHour: number;
  readonly lowerBoundDollarsPerHour: number;
}

/**
 * What the fleet costs now, and a bound from the same prices that the plans of whole fleets are proven by: no plan that gives
 * each endpoint as many replicas, all on one of the kinds of hardware that it admits, costs less. null where nothing has a price.
 */
export function planCost(fleet: RunningFleet, placed: readonly { readonly demand: PlacementDemand; readonly replicas: number }[]): PlanCost | null {
  const { pools } = fleet.state;
  if (pools.every((pool) => pool.pricePerGpu === 0)) return null;
  const uses = placed.filter(({ replicas }) => replicas > 0).map(({ demand, replicas }) => usesOf(asFleetDemand(demand, replicas, fleet), pools));
  const dollarsPerHour = fleet.state.cost();
  return { dollarsPerHour, lowerBoundDollarsPerHour: Math.min(dollarsPerHour, Math.max(0, findPrices(uses, pools).lowerBound)) };
}

function asFleetDemand(demand: PlacementDemand, replicas: number, { state }: RunningFleet): FleetDemand {
  const options = new Map(waysOf(demand, state.pools).flatMap(({ pool, part }) => {
    const info = state.pools[pool];
    return info === undefined ? [] : [[`${info.gpuType}/${info.sharing}/${part.migProfile ?? ''}`, { gpuType: info.gpuType, sharing: info.sharing, precision: demand.precision ?? '', parts: Array.from({ length: replicas }, () => part) }] as const];
  }));
  const { rules } = demand;
  return { endpointId: demand.endpointId, options: [...options.values()], hint: '', allowsSpot: rules.allowsSpot, pinnedNodeIds: rules.pinnedNodeIds, tolerations: rules.tolerations };
}
