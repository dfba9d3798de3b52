import type { ReservationMadeV1 } from '@penstock/contract-events';
import { FleetPlanner } from '../fleet/fleet-planner.js';
import type { FleetNode } from '../fleet/fleet-types.js';
import { demandOf, optionOf, type CapacityOption } from './capacity-options.js';
import { windowOf } from './commitment-book.js';

/** Times at which what stands is packed; beyond this many, all that overlaps counts as standing at once. */
const CHECKPOINTS_MAX = 32;

/** What stands at one time, packed in one order. */
interface Packing {
  readonly planner: FleetPlanner;
  /** Promises that have no place any more, since nodes were lost. */
  readonly broken: readonly ReservationMadeV1[];
}

/**
 * The fleet with nothing on it but what is promised, at each time within a window at which that grows. What runs beside it
 * does not count: it gives way to promises.
 */
export class CommittedFleet {
  /** By time; for each the packings that keep most promises. */
  private readonly checkpoints: readonly (readonly Packing[])[];

  constructor(nodes: readonly FleetNode[], commitments: readonly ReservationMadeV1[], readonly beginMs: number, readonly endMs: number) {
    const overlapping = commitments.filter((made) => windowOf(made).beginMs < endMs && windowOf(made).endMs > beginMs);
    const begins = [...new Set([beginMs, ...overlapping.map((made) => windowOf(made).beginMs).filter((at) => at > beginMs)])].sort((one, other) => one - other);
    const standing = begins.length > CHECKPOINTS_MAX ? [overlapping] : begins.map((at) => overlapping.filter((made) => windowOf(made).beginMs <= at && windowOf(made).endMs > at));
    this.checkpoints = standing.map((made) => bestPackings(nodes, made));
  }

  /**
   * Whether there is room at every time of the window beside all that stands. Where promises are broken already, nothing more is
   * promised of their kind of hardware. Nothing stays taken.
   */
  fits(option: CapacityOption): boolean {
    const demand = demandOf('candidate', option);
    return this.checkpoints.every((packings) => packings.some(({ planner, broken }) => {
      if (planner.state.pools.length === 0 || broken.some(({ capacity }) => capacity.gpuType === option.option.gpuType)) return false;
      const outcome = planner.arrive(demand);
      planner.depart(demand.endpointId);
      return !('reason' in outcome);
    }));
  }

  /** Promises that have no place at some time of the window. */
  broken(): readonly string[] {
    return [...new Set(this.checkpoints.flatMap(([best]) => best?.broken.map(({ reservationId }) => reservationId) ?? []))];
  }

  /** GPUs of a type, and how many of them are promised at the busiest time. */
  gpus(gpuType: string): { readonly there: number; readonly promised: number } {
    let there = 0;
    let promised = 0;
    for (const [best] of this.checkpoints) {
      if (best === undefined) continue;
      const { state } = best.planner;
      const pools = state.pools.flatMap((pool, index) => (pool.gpuType === gpuType ? [index] : []));
      there = pools.reduce((sum, pool) => sum + (state.pools[pool]?.gpus ?? 0), 0);
      promised = Math.max(promised, pools.reduce((sum, pool) => sum + (state.open[pool]?.size ?? 0), 0));
    }
    return { there, promised };
  }
}

/** Packs in the order of the promises, and all at once; keeps the packings that break fewest, and so the fewest promises. */
function bestPackings(nodes: readonly FleetNode[], commitments: readonly ReservationMadeV1[]): readonly Packing[] {
  const inTurn = packInTurn(nodes, commitments);
  if (commitments.length < 2) return [inTurn];
  const packings = [inTurn, packAtOnce(nodes, commitments)];
  const fewest = Math.min(...packings.map(({ broken }) => broken.length));
  if (fewest === 0) return packings.filter(({ broken }) => broken.length === 0);
  // Some have to be broken: those of the lowest priority.
  return [packInTurn(nodes, commitments.toSorted((one, other) => other.level.priority - one.level.priority))];
}

function packInTurn(nodes: readonly FleetNode[], commitments: readonly ReservationMadeV1[]): Packing {
  const planner = new FleetPlanner(nodes);
  const broken = commitments.filter((made) => planner.state.pools.length === 0 || 'reason' in planner.arrive(demandOf(made.reservationId, { option: optionOf(made.capacity), capacity: made.capacity })));
  return { planner, broken };
}

function packAtOnce(nodes: readonly FleetNode[], commitments: readonly ReservationMadeV1[]): Packing {
  const planner = new FleetPlanner(nodes);
  if (planner.state.pools.length === 0) return { planner, broken: commitments };
  const { refusals } = planner.planAll(commitments.map((made) => demandOf(made.reservationId, { option: optionOf(made.capacity), capacity: made.capacity })));
  const refused = new Set(refusals.map(({ endpointId }) => endpointId));
  return { planner, broken: commitments.filter(({ reservationId }) => refused.has(reservationId)) };
}
