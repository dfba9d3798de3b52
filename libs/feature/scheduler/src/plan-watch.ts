import { isMoving, planConsolidation, ReplicaPlanner, type Optimiser, type PlacementInput, type PlacementPlan, type PlanCost, type PlannedPlacement } from '@penstock/domain-placement';
import type { Clock, Logger } from '@penstock/kernel';
import type { SchedulerConfig } from './config.js';

/** Finding the bound of a large fleet takes a while, and it moves slowly. */
const COST_INTERVAL_MS = 60_000;

/** So long the optimiser looks for moves; what it has by then is taken. */
const REPACK_TIME_MS = 2_000;

/** As close to the best repack as is worth waiting for. */
const REPACK_GAP = 0.01;

export interface PlanWatchParts {
  readonly config: Pick<SchedulerConfig, 'REPACK_INTERVAL_MS'>;
  /** Left out, nothing is repacked. */
  readonly optimiser: Optimiser | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Plans, and knows what the plan costs against its lower bound; now and then it looks for moves that make it cheaper. */
export class PlanWatch {
  private cost: { readonly value: PlanCost | null; readonly atMs: number } | undefined;
  private repackedAtMs: number;
  private repackGain = 0;

  constructor(private readonly parts: PlanWatchParts) {
    this.repackedAtMs = parts.clock.now();
  }

  /** What the fleet costs and no plan costs less than, as of the last look; null where nothing has a price. */
  lastCost(): PlanCost | null {
    return this.cost?.value ?? null;
  }

  /** Dollars over the horizon that the last repack gained. */
  lastRepackGain(): number {
    return this.repackGain;
  }

  async plan(input: PlacementInput): Promise<PlacementPlan> {
    const planner = new ReplicaPlanner(input);
    const plan = planner.plan();
    const placements = [...plan.placements, ...(await this.repack(input, planner, plan))];
    const cost = this.costOf(planner);
    return { ...plan, placements: placements.map((placement) => ({ ...placement, reason: { ...placement.reason, plan: cost } })) };
  }

  private costOf(planner: ReplicaPlanner): PlanCost | null {
    const nowMs = this.parts.clock.now();
    if (this.cost === undefined || nowMs - this.cost.atMs >= COST_INTERVAL_MS) this.cost = { value: planner.cost(), atMs: nowMs };
    return this.cost.value;
  }

  /** Successors of replicas whose move empties a GPU, when the fleet is calm. Nothing is moved while something else has no place. */
  private async repack(input: PlacementInput, planner: ReplicaPlanner, plan: PlacementPlan): Promise<readonly PlannedPlacement[]> {
    const { config, optimiser, clock, logger } = this.parts;
    const isCalm = plan.placements.length === 0 && plan.refusals.length === 0 && plan.drains.length === 0 && !isMoving(input);
    if (optimiser === undefined || config.REPACK_INTERVAL_MS === 0 || !isCalm || clock.now() - this.repackedAtMs < config.REPACK_INTERVAL_MS) return [];
    this.repackedAtMs = clock.now();
    const found = await planConsolidation(input, planner.fleet, optimiser, { timeMs: REPACK_TIME_MS, gap: REPACK_GAP }).catch((error: unknown) => {
      logger.warn({ err: error }, 'the optimiser failed; nothing is repacked this time');
      return undefined;
    });
    if (found === undefined) return [];
    const { moves, plan: repack } = found;
    this.repackGain = moves.length === 0 ? 0 : repack.gainDollars;
    logger.info({ moves: moves.length, gainDollars: repack.gainDollars, gainBoundDollars: repack.gainBoundDollars, why: repack.reason }, 'looked for a better packing');
    return moves.flatMap((move) => planner.move(move) ?? []);
  }
}
