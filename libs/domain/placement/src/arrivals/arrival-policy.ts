import { WHOLE_ACCELERATOR_MILLI, type ArrivalDemand } from './arrival-demand.js';
import type { ArrivalFleet } from './arrival-fleet.js';
import type { TypicalWorkload } from './typical-workload.js';

/** How good one node is for one demand, and on which accelerators; asked only for nodes that fit. */
export interface ArrivalPolicy {
  /**
   * Writes the chosen accelerators, counted from the node's first, into `chosen` and returns the score; the highest
   * wins, and the first node among equals.
   */
  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number;
}

/** Steps of the fragmentation score, and the width of its sigmoid in thousandths of an accelerator; both from FGD. */
const GRADIENT_STEPS = 100;
const GRADIENT_WIDTH_MILLI = 1_000;

/**
 * Fragmentation gradient descent as its authors have it: a demand goes where the compute that typical arrivals cannot use
 * grows least; the score is quantised, and what is equal goes to the first node. It is here to be compared with.
 */
export class FragmentationGradient implements ArrivalPolicy {
  constructor(private readonly workload: TypicalWorkload) {}

  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
    const growth = leastGrowth(this.workload, fleet, node, demand, chosen);
    return Math.floor(GRADIENT_STEPS / (1 + Math.exp(growth / GRADIENT_WIDTH_MILLI)));
  }
}

/** Going from the first node to the last costs as much as losing this many accelerators to fragmentation. */
const ORDER_WEIGHT = 0.5;

/** Lacking all CPU of the largest node for what stays free costs as much as losing this many accelerators. */
const SHORTAGE_WEIGHT = 0.8;

/** A node that nobody uses yet is preferred by this much: gaps on used nodes wait for the demands that fit them better. */
const UNTOUCHED_BONUS = 0.15;

/**
 * The policy for arrivals. To the fragmentation gradient, unquantised, it adds what the gradient does not see: nodes are
 * filled in one fixed order, so that the ones at its end stay whole for demands that need a whole node; the accelerators
 * that stay free on a node must keep enough CPU for the demands that will want them; and an untouched node is opened a
 * little early. The order should mix node types, since filling one type after the other loses the choice between them.
 * The weights were chosen on shuffles of the openb traces that the benchmark does not use.
 */
export class BalancedGradient implements ArrivalPolicy {
  constructor(private readonly workload: TypicalWorkload) {}

  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
    const growth = leastGrowth(this.workload, fleet, node, demand, chosen) / WHOLE_ACCELERATOR_MILLI;
    const cpuAfter = (fleet.cpuFree[node] as number) - demand.cpuMilli;
    const acceleratorsAfter = freeAccelerators(fleet, node) - (demand.accelerators * demand.computeMilli) / WHOLE_ACCELERATOR_MILLI;
    const shortage = Math.max(0, acceleratorsAfter * this.workload.cpuPerAccelerator - cpuAfter) / fleet.largest.cpu;
    const bonus = fleet.isUntouched(node) ? UNTOUCHED_BONUS : 0;
    return bonus - growth - (ORDER_WEIGHT * node) / fleet.nodes.length - SHORTAGE_WEIGHT * shortage;
  }
}

/**
 * Writes the accelerators on which fragmentation grows least, the tightest among equals, and returns the growth in
 * thousandths of an accelerator.
 */
function leastGrowth(workload: TypicalWorkload, fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
  const before = workload.fragmentation(fleet, node);
  const growthOn = (accelerators: readonly number[]): number => {
    fleet.shift(node, accelerators, demand, -1);
    const after = workload.fragmentation(fleet, node);
    fleet.shift(node, accelerators, demand, 1);
    return after - before;
  };
  if (demand.accelerators !== 1) {
    chooseTightest(fleet, node, demand, chosen);
    return growthOn(chosen);
  }
  const start = fleet.offset[node] ?? 0;
  const end = fleet.offset[node + 1] ?? 0;
  const seen: number[] = [];
  let best = Number.POSITIVE_INFINITY;
  let bestFree = Number.POSITIVE_INFINITY;
  for (let slot = start; slot < end; slot += 1) {
    if (!fleet.acceleratorFits(slot, demand)) continue;
    const free = fleet.computeFree[slot] as number;
    // Accelerators in the same state are the same to the score.
    if (seen.some((other) => fleet.computeFree[other] === free && fleet.vramFree[other] === fleet.vramFree[slot])) continue;
    seen.push(slot);
    const growth = growthOn([slot - start]);
    if (growth > best || (growth === best && free >= bestFree)) continue;
    best = growth;
    bestFree = free;
    chosen[0] = slot - start;
  }
  return best;
}

/** Least of everything left over, each resource against the largest node. */
export class BestFit implements ArrivalPolicy {
  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
    chooseTightest(fleet, node, demand, chosen);
    return tightness(fleet, node, demand);
  }
}

/** The node whose free vector points least along the demand's, as the FGD authors' baseline has it. */
export class DotProduct implements ArrivalPolicy {
  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
    chooseTightest(fleet, node, demand, chosen);
    const { cpu, accelerators } = fleet.largest;
    const compute = (demand.accelerators * demand.computeMilli) / WHOLE_ACCELERATOR_MILLI / accelerators;
    return 1 - ((demand.cpuMilli / cpu) * (fleet.cpuFree[node] as number)) / cpu - (compute * freeAccelerators(fleet, node)) / accelerators;
  }
}

/** Any node that fits, by the numbers it is given; the floor that every policy has to beat. */
export class RandomChoice implements ArrivalPolicy {
  constructor(private readonly next: () => number) {}

  assess(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): number {
    chooseTightest(fleet, node, demand, chosen);
    return this.next();
  }
}

/** Between 0 and 1: what stays free on the node after the demand, CPU and compute alike; 1 is a node used up. */
function tightness(fleet: ArrivalFleet, node: number, demand: ArrivalDemand): number {
  const { cpu, accelerators } = fleet.largest;
  const cpuLeft = ((fleet.cpuFree[node] as number) - demand.cpuMilli) / cpu;
  const computeLeft = (freeAccelerators(fleet, node) - (demand.accelerators * demand.computeMilli) / WHOLE_ACCELERATOR_MILLI) / accelerators;
  return 1 - (cpuLeft + computeLeft) / 2;
}

function freeAccelerators(fleet: ArrivalFleet, node: number): number {
  let free = 0;
  const end = fleet.offset[node + 1] ?? 0;
  for (let slot = fleet.offset[node] ?? 0; slot < end; slot += 1) free += fleet.computeFree[slot] as number;
  return free / WHOLE_ACCELERATOR_MILLI;
}

/** The accelerators that fit with the least free compute, the first among equals. */
function chooseTightest(fleet: ArrivalFleet, node: number, demand: ArrivalDemand, chosen: number[]): void {
  chosen.length = 0;
  const start = fleet.offset[node] ?? 0;
  const end = fleet.offset[node + 1] ?? 0;
  while (chosen.length < demand.accelerators) {
    let best = -1;
    for (let slot = start; slot < end; slot += 1) {
      if (!fleet.acceleratorFits(slot, demand) || chosen.includes(slot - start)) continue;
      if (best < 0 || (fleet.computeFree[slot] as number) < (fleet.computeFree[best] as number)) best = slot;
    }
    if (best < 0) return;
    chosen.push(best - start);
  }
}
