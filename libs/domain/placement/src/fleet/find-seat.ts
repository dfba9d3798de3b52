import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { FleetState } from './fleet-state.js';
import type { FleetNode, FleetPart, FleetSeat } from './fleet-types.js';

/** What a place costs: GPUs that nobody used before, and how loose the fit is. */
export interface FoundSeat extends FleetSeat {
  readonly opened: number;
}

/** No GPU has this number: looks at gaps on all of them. */
export const NO_GPU = -1;

/**
 * The tightest place for a part in a pool, on GPUs in use where one fits; otherwise on the node with the fewest untouched
 * GPUs, so that whole nodes stay for those that need them. `inGapsBut` looks at GPUs in use only, without the one that it names.
 */
export function findSeat(state: FleetState, pool: number, part: FleetPart, isAllowed: (node: number) => boolean, inGapsBut?: number): FoundSeat | undefined {
  const mayOpen = inGapsBut === undefined;
  const avoided = inGapsBut ?? NO_GPU;
  if (part.accelerators > 1) return mayOpen ? findGroup(state, pool, part, isAllowed) : undefined;
  const inUse = part.migProfile === null ? tightestShare(state, pool, part, isAllowed, avoided) : tightestInstance(state, pool, part, part.migProfile, isAllowed, avoided);
  if (inUse !== undefined || !mayOpen) return inUse;
  return findUntouched(state, pool, part, isAllowed);
}

/** Whether a part could take this very seat. Nodes that are closed count: what stands there stays. */
export function isFree(state: FleetState, part: FleetPart, seat: FleetSeat): boolean {
  if (seat.gpus.length !== part.accelerators || seat.nodes.length !== part.nodes) return false;
  return seat.gpus.every((gpu) => {
    if (gpu < 0 || gpu >= state.nodeOf.length) return false;
    if (part.migProfile === null) return state.layout[gpu] === 0 && fitOfShare(state, gpu, part) !== undefined;
    const book = state.pools[state.poolOfGpu(gpu)]?.book;
    return book !== null && book !== undefined && state.computeFree[gpu] === WHOLE_ACCELERATOR_MILLI && book.canPlace(state.layout[gpu] as number, part.migProfile, seat.start ?? 0);
  });
}

/** Idle MIG instances of a profile that exist on a GPU, by where they begin: using one needs no change of geometry. */
export type IdleStarts = (gpu: number, profile: string) => readonly number[];

const NONE_IDLE: IdleStarts = () => [];

/**
 * The tightest place for a part on one node, on GPUs in use where one fits; of a gang, the place for its share of the node.
 * Undefined when it does not fit there.
 */
export function seatOnNode(state: FleetState, node: number, part: FleetPart, idleStarts: IdleStarts = NONE_IDLE): FoundSeat | undefined {
  if (!state.hostFits(node, part)) return undefined;
  const count = part.accelerators / part.nodes;
  if (count > 1 || part.nodes > 1) {
    const island = islandWith(state, node, count, part.vramMib);
    return island === undefined ? undefined : { gpus: island, nodes: [node], start: null, opened: island.length };
  }
  let best: { readonly gpu: number; readonly start: number | null; readonly loose: number } | undefined;
  for (let gpu = state.firstGpu[node] as number; gpu < (state.firstGpu[node + 1] as number); gpu += 1) {
    const fit = part.migProfile === null ? fitOfShare(state, gpu, part) : fitOfInstance(state, gpu, part.migProfile, idleStarts(gpu, part.migProfile));
    // An untouched GPU stays whole as long as one in use will do.
    const loose = fit === undefined ? 0 : fit.loose + (state.owners[gpu] === 0 ? UNTOUCHED_LOOSENESS : 0);
    if (fit !== undefined && (best === undefined || loose < best.loose)) best = { gpu, start: fit.start, loose };
  }
  return best === undefined ? undefined : { gpus: [best.gpu], nodes: [node], start: best.start, opened: state.owners[best.gpu] === 0 ? 1 : 0 };
}

/** More than any fit can differ by. */
const UNTOUCHED_LOOSENESS = 1_000_000;

interface Fit {
  readonly start: number | null;
  readonly loose: number;
}

function fitOfShare(state: FleetState, gpu: number, part: FleetPart): Fit | undefined {
  const compute = (state.computeFree[gpu] as number) - part.computeMilli;
  const memory = (state.vramFree[gpu] as number) - part.vramMib;
  // Where all compute is somebody's, as that of a group is, not even a part that sets none aside may slow it down.
  if (compute < 0 || memory < 0 || (state.computeFree[gpu] as number) <= 0) return undefined;
  return { start: null, loose: looseness(compute, memory, part, state.pools[state.poolOfGpu(gpu)]?.vramMib ?? 1) };
}

function fitOfInstance(state: FleetState, gpu: number, profile: string, idle: readonly number[]): Fit | undefined {
  const book = state.pools[state.poolOfGpu(gpu)]?.book;
  if (book === null || book === undefined || state.computeFree[gpu] !== WHOLE_ACCELERATOR_MILLI) return undefined;
  const layout = state.layout[gpu] as number;
  const there = idle.find((start) => book.canPlace(layout, profile, start));
  if (there !== undefined) return { start: there, loose: book.room(book.place(layout, profile, there)) };
  const step = book.add(layout, profile);
  return step === undefined ? undefined : { start: step.start, loose: book.room(step.layout) };
}

/** What is left of compute and memory, as parts of the whole. A part that reserves no compute is judged by memory alone. */
function looseness(compute: number, memory: number, part: FleetPart, vram: number): number {
  const computeLeft = compute / WHOLE_ACCELERATOR_MILLI;
  const memoryLeft = memory / vram;
  if (part.computeMilli === 0) return memoryLeft;
  return computeLeft + memoryLeft + IMBALANCE_WEIGHT * Math.abs(computeLeft - memoryLeft);
}

/** Left over compute and memory that differ much are of little use to anybody. */
const IMBALANCE_WEIGHT = 8;

function tightestShare(state: FleetState, pool: number, part: FleetPart, isAllowed: (node: number) => boolean, avoided: number): FoundSeat | undefined {
  const { computeFree, vramFree, nodeOf } = state;
  const vram = state.pools[pool]?.vramMib ?? 1;
  let best = -1;
  let bestLeft = Number.POSITIVE_INFINITY;
  for (const gpu of state.gaps[pool] ?? []) {
    const compute = (computeFree[gpu] as number) - part.computeMilli;
    const memory = (vramFree[gpu] as number) - part.vramMib;
    if (compute < 0 || memory < 0 || gpu === avoided) continue;
    const left = looseness(compute, memory, part, vram);
    if (left > bestLeft || (left === bestLeft && gpu > best)) continue;
    const node = nodeOf[gpu] as number;
    if (!state.hostFits(node, part) || !isAllowed(node)) continue;
    best = gpu;
    bestLeft = left;
  }
  return best < 0 ? undefined : { gpus: [best], nodes: [nodeOf[best] as number], start: null, opened: 0 };
}

function tightestInstance(state: FleetState, pool: number, part: FleetPart, profile: string, isAllowed: (node: number) => boolean, avoided: number): FoundSeat | undefined {
  const book = state.pools[pool]?.book;
  if (book === null || book === undefined) return undefined;
  let best = -1;
  let bestRoom = Number.POSITIVE_INFINITY;
  let start = 0;
  for (const gpu of state.gaps[pool] ?? []) {
    // A GPU that is part of a group is not in MIG mode.
    if (state.computeFree[gpu] !== WHOLE_ACCELERATOR_MILLI || gpu === avoided) continue;
    const step = book.add(state.layout[gpu] as number, profile);
    if (step === undefined) continue;
    const room = book.room(step.layout);
    if (room > bestRoom || (room === bestRoom && gpu > best)) continue;
    const node = state.nodeOf[gpu] as number;
    if (!state.hostFits(node, part) || !isAllowed(node)) continue;
    best = gpu;
    bestRoom = room;
    start = step.start;
  }
  return best < 0 ? undefined : { gpus: [best], nodes: [state.nodeOf[best] as number], start, opened: 0 };
}

function findUntouched(state: FleetState, pool: number, part: FleetPart, isAllowed: (node: number) => boolean): FoundSeat | undefined {
  const book = state.pools[pool]?.book;
  const step = part.migProfile === null ? undefined : book?.add(0, part.migProfile);
  if (part.migProfile !== null && step === undefined) return undefined;
  const node = fewestFree(state, pool, part, isAllowed, () => true);
  if (node === undefined || part.vramMib > (state.pools[pool]?.vramMib ?? 0)) return undefined;
  const gpu = untouchedOf(state, node)[0];
  return gpu === undefined ? undefined : { gpus: [gpu], nodes: [node], start: step?.start ?? null, opened: 1 };
}

/** Every node of a gang, or none of them; on each node inside one island. */
function findGroup(state: FleetState, pool: number, part: FleetPart, isAllowed: (node: number) => boolean): FoundSeat | undefined {
  if (part.vramMib > (state.pools[pool]?.vramMib ?? 0)) return undefined;
  const perNode = part.accelerators / part.nodes;
  const gpus: number[] = [];
  const nodes: number[] = [];
  while (nodes.length < part.nodes) {
    const node = fewestFree(state, pool, part, isAllowed, (candidate) => !nodes.includes(candidate) && islandWith(state, candidate, perNode) !== undefined);
    const island = node === undefined ? undefined : islandWith(state, node, perNode);
    if (node === undefined || island === undefined) return undefined;
    nodes.push(node);
    gpus.push(...island);
  }
  return { gpus, nodes, start: null, opened: gpus.length };
}

function fewestFree(state: FleetState, pool: number, part: FleetPart, isAllowed: (node: number) => boolean, fits: (node: number) => boolean): number | undefined {
  const needed = part.accelerators / part.nodes;
  let best: number | undefined;
  for (const node of state.pools[pool]?.nodes ?? []) {
    const free = state.wholeFree[node] as number;
    if (free < needed || (best !== undefined && free >= (state.wholeFree[best] as number))) continue;
    if (state.hostFits(node, part) && isAllowed(node) && fits(node)) best = node;
  }
  return best;
}

function untouchedOf(state: FleetState, node: number): readonly number[] {
  const first = state.firstGpu[node] as number;
  return Array.from({ length: (state.nodes[node] as FleetNode).gpus }, (_, index) => first + index).filter((gpu) => state.owners[gpu] === 0);
}

/** The island with the fewest untouched GPUs that are enough. */
function islandWith(state: FleetState, node: number, count: number, vramMib = 0): readonly number[] | undefined {
  const first = state.firstGpu[node] as number;
  const fitting = (state.nodes[node] as FleetNode).islands
    .map((island) => island.map((index) => first + index).filter((gpu) => state.owners[gpu] === 0 && (state.vramFree[gpu] as number) >= vramMib))
    .filter((island) => island.length >= count)
    .sort((one, other) => one.length - other.length);
  return fitting[0]?.slice(0, count);
}
