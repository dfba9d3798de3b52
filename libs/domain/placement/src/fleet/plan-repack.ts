import type { IntegerProgram, Optimiser, OptimiserLimits, ProgramConstraint, ProgramVariable } from '../optimiser.js';

/** A replica on a shared GPU, and what moving it costs. */
export interface RepackItem {
  readonly id: string;
  readonly computeMilli: number;
  readonly vramMib: number;
  /** Dollars of starting it elsewhere, both copies running meanwhile, and draining the old one. */
  readonly moveDollars: number;
}

/** A GPU in use with what is free on it. */
export interface RepackGpu {
  readonly gpuId: string;
  readonly pricePerHour: number;
  readonly computeFree: number;
  readonly vramFree: number;
  readonly items: readonly RepackItem[];
  /** False where something on it must not move. */
  readonly mayBeEmptied: boolean;
}

export interface RepackMove {
  readonly id: string;
  readonly fromGpuId: string;
  readonly toGpuId: string;
}

export interface RepackPlan {
  /** In any order: every target has its room from the start, since no GPU both gives and takes. */
  readonly moves: readonly RepackMove[];
  readonly emptiedGpuIds: readonly string[];
  readonly savedDollarsPerHour: number;
  readonly moveDollars: number;
  /** What is saved over the horizon, less the moves. Never below zero: a repack that does not pay proposes nothing. */
  readonly gainDollars: number;
  /** No set of moves among the GPUs that were looked at gains more. */
  readonly gainBoundDollars: number;
  readonly reason: string;
}

export interface RepackOptions {
  /** How long the packing is expected to stay useful, in hours. */
  readonly horizonHours: number;
  /** Whether the replica may run there: failure domains, pins, taints. */
  readonly mayRunOn: (itemId: string, gpuId: string) => boolean;
  readonly limits: OptimiserLimits;
}

/** GPUs that might be emptied, the least used first, and GPUs that might take, those with most room first. */
const SOURCES_MAX = 32;
const TARGETS_MAX = 64;

/**
 * Which GPUs to empty into the gaps of others, as an integer program: the dollars of the GPUs that become free over the
 * horizon, less those of the drains, are made as large as they can be.
 */
export async function planRepack(gpus: readonly RepackGpu[], optimiser: Optimiser, options: RepackOptions): Promise<RepackPlan> {
  const { program, moves } = repackProgram(gpus, options);
  if (moves.length === 0) return nothing('no replica that may move fits on another GPU', 0);
  const solution = await optimiser.minimise(program, options.limits);
  if (solution.values.length === 0) return nothing(`the optimiser found nothing in ${options.limits.timeMs} ms`, Math.max(0, -solution.bound));
  const chosen = moves.filter(({ variable }) => solution.values[variable] === 1);
  const emptied = gpus.filter((gpu) => chosen.some(({ move }) => move.fromGpuId === gpu.gpuId));
  const savedDollarsPerHour = emptied.reduce((sum, gpu) => sum + gpu.pricePerHour, 0);
  const moveDollars = chosen.reduce((sum, { dollars }) => sum + dollars, 0);
  const gainDollars = savedDollarsPerHour * options.horizonHours - moveDollars;
  if (chosen.length === 0 || gainDollars <= 0) return nothing('the drains cost more than the freed GPUs save', Math.max(0, -solution.bound));
  return {
    moves: chosen.map(({ move }) => move),
    emptiedGpuIds: emptied.map((gpu) => gpu.gpuId),
    savedDollarsPerHour,
    moveDollars,
    gainDollars,
    gainBoundDollars: Math.max(gainDollars, -solution.bound),
    reason: `${emptied.length} GPUs become free by ${chosen.length} moves: ${savedDollarsPerHour.toFixed(2)} dollars an hour for ${moveDollars.toFixed(2)} dollars of drains`,
  };
}

function nothing(reason: string, gainBoundDollars: number): RepackPlan {
  return { moves: [], emptiedGpuIds: [], savedDollarsPerHour: 0, moveDollars: 0, gainDollars: 0, gainBoundDollars, reason };
}

interface PossibleMove {
  readonly variable: number;
  readonly move: RepackMove;
  readonly item: RepackItem;
  readonly dollars: number;
}

function repackProgram(gpus: readonly RepackGpu[], options: RepackOptions): { readonly program: IntegerProgram; readonly moves: readonly PossibleMove[] } {
  const used = (gpu: RepackGpu): number => gpu.items.reduce((sum, item) => sum + item.computeMilli, 0);
  const sources = gpus.filter((gpu) => gpu.mayBeEmptied && gpu.items.length > 0).sort((one, other) => used(one) - used(other) || compare(one, other)).slice(0, SOURCES_MAX);
  const targets = gpus.filter((gpu) => gpu.items.length > 0).sort((one, other) => other.computeFree - one.computeFree || compare(one, other)).slice(0, TARGETS_MAX);
  const variables: ProgramVariable[] = sources.map((gpu) => ({ name: `empty:${gpu.gpuId}`, cost: -gpu.pricePerHour * options.horizonHours, isWhole: true, atMost: 1 }));
  const moves: PossibleMove[] = [];
  for (const source of sources) {
    for (const item of source.items) {
      for (const target of targets) {
        if (target === source || item.computeMilli > target.computeFree || item.vramMib > target.vramFree || !options.mayRunOn(item.id, target.gpuId)) continue;
        moves.push({ variable: variables.length, move: { id: item.id, fromGpuId: source.gpuId, toGpuId: target.gpuId }, item, dollars: item.moveDollars });
        variables.push({ name: `move:${item.id}:${target.gpuId}`, cost: item.moveDollars, isWhole: true, atMost: 1 });
      }
    }
  }
  const constraints: ProgramConstraint[] = [];
  for (const [index, source] of sources.entries()) {
    for (const item of source.items) {
      const ways = moves.filter(({ move, item: moved }) => moved === item && move.fromGpuId === source.gpuId);
      constraints.push({ name: `whole:${source.gpuId}:${item.id}`, atLeast: 0, atMost: 0, terms: [{ variable: index, times: -1 }, ...ways.map(({ variable }) => ({ variable, times: 1 }))] });
    }
  }
  for (const target of targets) {
    const incoming = moves.filter(({ move }) => move.toGpuId === target.gpuId);
    if (incoming.length === 0) continue;
    // A GPU that is emptied offers no room, so that no move waits for another.
    const asSource = sources.indexOf(target);
    const closing = (room: number): ProgramConstraint['terms'] => (asSource < 0 ? [] : [{ variable: asSource, times: room }]);
    constraints.push({ name: `compute:${target.gpuId}`, atMost: target.computeFree, terms: [...incoming.map(({ variable, item }) => ({ variable, times: item.computeMilli })), ...closing(target.computeFree)] });
    constraints.push({ name: `memory:${target.gpuId}`, atMost: target.vramFree, terms: [...incoming.map(({ variable, item }) => ({ variable, times: item.vramMib })), ...closing(target.vramFree)] });
    if (asSource >= 0) for (const { variable } of incoming) constraints.push({ name: `either:${target.gpuId}:${variable}`, atMost: 1, terms: [{ variable, times: 1 }, { variable: asSource, times: 1 }] });
  }
  return { program: { variables, constraints }, moves };
}

function compare(one: RepackGpu, other: RepackGpu): number {
  return one.gpuId < other.gpuId ? -1 : 1;
}
