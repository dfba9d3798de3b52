import type { FleetSeat } from '../fleet/fleet-types.js';
import { planTransition, type LiveInstance, type MigGpu, type MigStep } from '../mig/mig-transition.js';
import { planRepack, type RepackGpu, type RepackPlan } from '../fleet/plan-repack.js';
import type { Optimiser, OptimiserLimits } from '../optimiser.js';
import { unitsOf } from './choose-drains.js';
import { compareText } from './compare-text.js';
import { closedBecause } from './exclusions.js';
import { MOVE_HORIZON_HOURS, moveDollars } from './move-prices.js';
import type { Holding, PlacedReplica, PlacementDemand, PlacementInput } from './placement-input.js';
import type { ReplicaWay } from './replica-ways.js';
import type { RunningFleet } from './running-fleet.js';

/** A replica that is to run elsewhere: its successor takes the seat, and it drains once that is ready. */
export interface PlannedMove {
  readonly demand: PlacementDemand;
  readonly replica: PlacedReplica;
  readonly way: ReplicaWay;
  readonly seat: FleetSeat;
  readonly why: string;
}

/** True while any replica is being replaced: moves come one batch after the other, so that room is never promised twice. */
export function isMoving({ demands }: PlacementInput): boolean {
  return demands.some((demand) => unitsOf(demand).some(({ successor }) => successor !== undefined) || demand.pending.some(({ replaces }) => replaces !== null));
}

interface Movable {
  readonly demand: PlacementDemand;
  readonly replica: PlacedReplica;
  readonly holding: Holding;
}

/** Ready replicas on one accelerator each: what may be moved. */
function movables({ demands, holdings }: PlacementInput): ReadonlyMap<string, Movable> {
  const byId = new Map(holdings.map((holding) => [holding.replicaId, holding]));
  return new Map(demands.flatMap((demand) => demand.replicas.flatMap((replica) => {
    const holding = byId.get(replica.replicaId);
    const isSingle = holding !== undefined && holding.members.reduce((sum, member) => sum + member.acceleratorIds.length, 0) === 1;
    return replica.isReady && isSingle ? [[replica.replicaId, { demand, replica, holding }] as const] : [];
  })));
}

export interface TransitionMoves {
  readonly moves: readonly PlannedMove[];
  /** Why nothing moves; null when something does, or when there is nothing to say. */
  readonly refusal: string | null;
}

/**
 * Moves that make room for one more MIG instance of a profile, make before break: each replica in its way is to run on an instance
 * elsewhere first. Refused where the drains cost more than the instance is worth over the horizon.
 */
export function planInstanceRoom(input: PlacementInput, fleet: RunningFleet, way: ReplicaWay): TransitionMoves {
  const pool = fleet.state.pools[way.pool];
  const profile = way.part.migProfile;
  if (pool?.book === null || pool === undefined || profile === null) return { moves: [], refusal: null };
  const movable = movables(input);
  const perHour = (name: string): number => pool.pricePerGpu * Math.max(pool.book?.sharesOf(name)?.compute ?? 1, pool.book?.sharesOf(name)?.memory ?? 1);
  const gpus = gpusOf(input, fleet, way.pool);
  const transition = planTransition(pool.book.geometry, gpus, profile, {
    perMove: (replicaId) => {
      const found = movable.get(replicaId);
      return found?.holding.mig === null || found === undefined ? Number.POSITIVE_INFINITY : moveDollars(perHour(found.holding.mig.profile), input);
    },
    benefitPerHour: perHour(profile),
    horizonHours: MOVE_HORIZON_HOURS,
  });
  if (transition.kind === 'refused') return { moves: [], refusal: transition.reason };
  const why = `makes room for ${profile}: ${transition.costDollars.toFixed(2)} dollars of drains for ${transition.benefitDollars.toFixed(2)}`;
  const moves = transition.steps.flatMap((step) => moveOf(step, way.pool, movable, fleet, why));
  const isAllowed = moves.every(({ demand, seat }) => mayStandOn(fleet, demand, seat.nodes[0] as number));
  return isAllowed ? { moves, refusal: null } : { moves: [], refusal: `the replicas in the way of ${profile} may not run where there is room` };
}

function mayStandOn(fleet: RunningFleet, demand: PlacementDemand, node: number): boolean {
  const owner = fleet.owners[node];
  return owner !== undefined && closedBecause(owner, demand) === undefined && owner.engines.some((engine) => engine.kind === demand.engine);
}

function moveOf(step: MigStep, pool: number, movable: ReadonlyMap<string, Movable>, fleet: RunningFleet, why: string): readonly PlannedMove[] {
  if (step.kind !== 'move') return [];
  const found = movable.get(step.replicaId);
  const gpu = Number(step.toGpuId);
  const seated = found === undefined ? undefined : fleet.seatOf(found.holding);
  if (found === undefined || seated === undefined || fleet.owners[fleet.state.nodeOf[gpu] as number] === undefined) return [];
  const seat = { gpus: [gpu], nodes: [fleet.state.nodeOf[gpu] as number], start: step.to.start };
  return [{ demand: found.demand, replica: found.replica, way: { pool, part: { ...seated.part, migProfile: step.to.profile } }, seat, why }];
}

/** The GPUs of a pool on open nodes, with instances in use and idle ones beside them. */
function gpusOf(input: PlacementInput, fleet: RunningFleet, pool: number): readonly MigGpu[] {
  const { state } = fleet;
  const inUse = new Map<number, LiveInstance[]>();
  for (const { members, mig, replicaId } of input.holdings) {
    const [member] = members;
    const gpu = member === undefined ? undefined : fleet.gpuNumber(member.nodeId, member.acceleratorIds[0] ?? '');
    if (mig !== null && gpu !== undefined) inUse.set(gpu, [...(inUse.get(gpu) ?? []), { profile: mig.profile, start: mig.start, replicaId }]);
  }
  const gpus: MigGpu[] = [];
  for (const node of state.pools[pool]?.nodes ?? []) {
    if (state.closed[node] === 1) continue;
    for (let gpu = state.firstGpu[node] as number; gpu < (state.firstGpu[node + 1] as number); gpu += 1) {
      const held = inUse.get(gpu) ?? [];
      const layout = state.pools[pool]?.book?.layoutOf(state.layout[gpu] as number) ?? [];
      // What this plan placed before is in the layout and not among the holdings: it cannot be moved yet.
      const planned = layout.filter((one) => !held.some((other) => other.profile === one.profile && other.start === one.start)).map((one) => ({ ...one, replicaId: 'planned' }));
      gpus.push({ gpuId: String(gpu), instances: [...held, ...planned] });
    }
  }
  return gpus;
}

/** Moves of one repack at most: each needs room twice until the successor is ready. */
export const REPACK_MOVES_MAX = 16;

/**
 * Moves that empty little-used GPUs into the gaps of others, where what is saved over the horizon exceeds what the moves cost.
 * GPUs are emptied whole or left as they are, and no more than {@link REPACK_MOVES_MAX} moves are proposed at a time.
 */
export async function planConsolidation(input: PlacementInput, fleet: RunningFleet, optimiser: Optimiser, limits: OptimiserLimits): Promise<{ readonly moves: readonly PlannedMove[]; readonly plan: RepackPlan }> {
  const movable = movables(input);
  const gpus = repackGpus(input, fleet, movable);
  const mayRunOn = (replicaId: string, gpuId: string): boolean => {
    const found = movable.get(replicaId);
    const from = found === undefined ? undefined : fleet.seatOf(found.holding);
    const gpu = Number(gpuId);
    const node = fleet.state.nodeOf[gpu] as number;
    const owner = fleet.owners[node];
    if (found === undefined || from === undefined || owner === undefined) return false;
    if (fleet.state.poolOf[from.seat.nodes[0] as number] !== fleet.state.poolOf[node] || !mayStandOn(fleet, found.demand, node)) return false;
    return fleet.state.hostFits(node, from.part) && !found.demand.replicas.some((other) => other !== found.replica && other.nodeIds.includes(owner.nodeId));
  };
  const plan = await planRepack(gpus, optimiser, { horizonHours: MOVE_HORIZON_HOURS, mayRunOn, limits });
  const moves: PlannedMove[] = [];
  for (const gpuId of [...plan.emptiedGpuIds].sort(compareText)) {
    const leaving = plan.moves.filter((move) => move.fromGpuId === gpuId);
    if (moves.length + leaving.length > REPACK_MOVES_MAX) continue;
    for (const { id, toGpuId } of leaving) {
      const found = movable.get(id);
      const from = found === undefined ? undefined : fleet.seatOf(found.holding);
      const node = fleet.state.nodeOf[Number(toGpuId)] as number;
      if (found === undefined || from === undefined) continue;
      moves.push({ demand: found.demand, replica: found.replica, way: { pool: fleet.state.poolOf[node] as number, part: from.part }, seat: { gpus: [Number(toGpuId)], nodes: [node], start: null }, why: `empties a GPU: ${plan.reason}` });
    }
  }
  return { moves, plan };
}

function repackGpus(input: PlacementInput, fleet: RunningFleet, movable: ReadonlyMap<string, Movable>): readonly RepackGpu[] {
  const { state } = fleet;
  const onGpu = new Map<number, Holding[]>();
  for (const holding of input.holdings) for (const gpu of fleet.seatOf(holding)?.seat.gpus ?? []) onGpu.set(gpu, [...(onGpu.get(gpu) ?? []), holding]);
  return [...onGpu].sort(([one], [other]) => one - other).flatMap(([gpu, holdings]) => {
    const pool = state.pools[state.poolOfGpu(gpu)];
    if (pool?.sharing !== 'shares' || pool.pricePerGpu === 0) return [];
    const items = holdings.flatMap((holding) => {
      const part = fleet.seatOf(holding)?.part;
      const share = part === undefined ? 1 : Math.max(part.computeMilli / 1_000, part.vramMib / Math.max(1e-9, pool.vramMib));
      return part === undefined ? [] : [{ id: holding.replicaId, computeMilli: part.computeMilli, vramMib: part.vramMib, moveDollars: moveDollars(pool.pricePerGpu * Math.min(1, share), input) }];
    });
    // What was planned a moment ago is on the ledger and in no holding; a GPU with it is not emptied.
    const isWhole = state.owners[gpu] === holdings.length && holdings.every((holding) => movable.has(holding.replicaId));
    return [{ gpuId: String(gpu), pricePerHour: pool.pricePerGpu, computeFree: state.computeFree[gpu] as number, vramFree: state.vramFree[gpu] as number, items, mayBeEmptied: isWhole }];
  });
}
