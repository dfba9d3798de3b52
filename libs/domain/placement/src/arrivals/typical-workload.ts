import { demandKey, WHOLE_ACCELERATOR_MILLI, type ArrivalDemand } from './arrival-demand.js';

/** What is free on each node: all that the measure looks at. */
export interface FragmentableFleet {
  readonly nodes: readonly { readonly acceleratorType: string }[];
  /** Index of the first accelerator of each node; one entry more than there are nodes. */
  readonly offset: ArrayLike<number>;
  readonly computeFree: ArrayLike<number>;
  readonly vramFree: ArrayLike<number>;
  readonly cpuFree: ArrayLike<number>;
}

/** Demands that differ in CPU only, together. */
interface DemandClass {
  readonly accelerators: number;
  readonly computeMilli: number;
  readonly vramMib: number;
  readonly acceleratorTypes: readonly string[];
  /** CPU wanted, ascending, and the share of arrivals that want at most as much. */
  readonly cpuMilli: number[];
  readonly weightUpTo: number[];
  readonly weight: number;
}

/** The rarest types, together 5 % of arrivals, are left out (the FGD authors' threshold). */
const TYPICAL_SHARE = 0.95;

const CPU_QUANTILE = 0.75;

interface DemandType {
  readonly demand: ArrivalDemand;
  /** Share of arrivals. */
  readonly weight: number;
}

/**
 * The types of demand that make up 95 % of arrivals, and how much of a node's free compute they could not use.
 * The measure is that of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
 * Gradient Descent", USENIX ATC 2023: for each type, the free compute on accelerators too small for it, or all of it when
 * the node cannot take the type at all; weighted by how often the type arrives.
 */
export class TypicalWorkload {
  /** CPU that an accelerator needs beside it, in thousandths of a core: enough for most demands for whole ones. */
  readonly cpuPerAccelerator: number;
  private readonly classes: readonly DemandClass[];
  private readonly classesByType = new Map<string, readonly DemandClass[]>();
  private readonly blindWeightByType = new Map<string, number>();

  constructor(arrivals: readonly ArrivalDemand[]) {
    const types = mostFrequent(arrivals);
    this.classes = classify(types);
    this.cpuPerAccelerator = cpuBeside(types);
  }

  /** Expected free compute of the node that the next arrival cannot use, in thousandths of an accelerator. */
  fragmentation(fleet: FragmentableFleet, node: number): number {
    const type = fleet.nodes[node]?.acceleratorType ?? '';
    const classes = this.classesFor(type);
    const start = fleet.offset[node] ?? 0;
    const end = fleet.offset[node + 1] ?? 0;
    const { computeFree, vramFree } = fleet;
    let total = 0;
    for (let slot = start; slot < end; slot += 1) total += computeFree[slot] as number;
    if (total === 0) return 0;
    const cpu = fleet.cpuFree[node] as number;
    let fragmented = (this.blindWeightByType.get(type) ?? 0) * total;
    for (const group of classes) {
      const fitting = fittingWeight(group, cpu);
      fragmented += (group.weight - fitting) * total;
      if (fitting === 0) continue;
      let count = 0;
      let usable = 0;
      for (let slot = start; slot < end; slot += 1) {
        const compute = computeFree[slot] as number;
        if (compute < group.computeMilli || (vramFree[slot] as number) < group.vramMib) continue;
        count += 1;
        usable += compute;
      }
      fragmented += fitting * (count >= group.accelerators ? total - usable : total);
    }
    return fragmented;
  }

  /** Classes that may run on the type; the weight of the others is kept apart, since all is lost to them. */
  private classesFor(type: string): readonly DemandClass[] {
    const known = this.classesByType.get(type);
    if (known !== undefined) return known;
    const usable = this.classes.filter((group) => group.accelerators > 0 && (group.acceleratorTypes.length === 0 || group.acceleratorTypes.includes(type)));
    const weight = (groups: readonly DemandClass[]): number => groups.reduce((sum, group) => sum + group.weight, 0);
    this.blindWeightByType.set(type, weight(this.classes) - weight(usable));
    this.classesByType.set(type, usable);
    return usable;
  }
}

function fittingWeight(group: DemandClass, cpu: number): number {
  const { cpuMilli, weightUpTo } = group;
  let index = cpuMilli.length - 1;
  while (index >= 0 && (cpuMilli[index] as number) > cpu) index -= 1;
  return index < 0 ? 0 : (weightUpTo[index] as number);
}

function mostFrequent(arrivals: readonly ArrivalDemand[]): readonly DemandType[] {
  const counts = new Map<string, { readonly demand: ArrivalDemand; count: number }>();
  for (const demand of arrivals) {
    const key = demandKey(demand);
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { demand, count: 1 });
    else known.count += 1;
  }
  const ranked = [...counts].sort(([key, one], [otherKey, other]) => other.count - one.count || (key < otherKey ? -1 : 1));
  const kept: { readonly demand: ArrivalDemand; readonly count: number }[] = [];
  let covered = 0;
  for (const [, entry] of ranked) {
    if (covered >= TYPICAL_SHARE * arrivals.length) break;
    kept.push(entry);
    covered += entry.count;
  }
  return kept.map(({ demand, count }) => ({ demand, weight: count / covered }));
}

/** Three quarters of the demands for whole accelerators need no more; of all demands where none is for whole ones. */
function cpuBeside(types: readonly DemandType[]): number {
  const whole = types.filter(({ demand }) => demand.accelerators > 0 && demand.computeMilli === WHOLE_ACCELERATOR_MILLI);
  const counted = (whole.length > 0 ? whole : types.filter(({ demand }) => demand.accelerators > 0))
    .map(({ demand, weight }) => ({ cpu: demand.cpuMilli / demand.accelerators, weight: weight * demand.accelerators }))
    .sort((one, other) => one.cpu - other.cpu);
  const total = counted.reduce((sum, { weight }) => sum + weight, 0);
  let covered = 0;
  for (const { cpu, weight } of counted) {
    covered += weight;
    if (covered >= CPU_QUANTILE * total) return cpu;
  }
  return 0;
}

function classify(types: readonly DemandType[]): readonly DemandClass[] {
  const members = new Map<string, DemandType[]>();
  for (const type of types) {
    const key = demandKey({ ...type.demand, cpuMilli: 0, hostMemoryMib: 0 });
    members.set(key, [...(members.get(key) ?? []), type]);
  }
  return [...members.values()].map((group) => {
    const sorted = [...group].sort((one, other) => one.demand.cpuMilli - other.demand.cpuMilli);
    let weight = 0;
    const weightUpTo = sorted.map((type) => (weight += type.weight));
    const { accelerators, computeMilli, vramMib, acceleratorTypes } = (sorted[0] as (typeof sorted)[number]).demand;
    return { accelerators, computeMilli, vramMib, acceleratorTypes, cpuMilli: sorted.map((type) => type.demand.cpuMilli), weightUpTo, weight };
  });
}
