import { solveCover, type CoverColumn, type CoverProgram } from '../cover/cover-program.js';
import type { MigAssignment, MigDemand, MigOption } from './mig-demand.js';
import { migRefusals } from './mig-demand.js';
import { profileOf, type MigGeometry, type MigInstance } from './mig-geometry.js';
import { layOut, maximalMultisets, type MigMultiset } from './mig-layouts.js';

export interface PackedInstance extends MigInstance {
  readonly demand: string;
  readonly option: MigOption;
}

export type PackedGpu = readonly PackedInstance[];

export interface MigPacking {
  readonly gpus: readonly PackedGpu[];
  /** Whole GPUs that no plan can do without; the gap to `gpus.length` bounds what is wasted. */
  readonly lowerBound: number;
  /** The same before rounding up. */
  readonly fractionalBound: number;
}

/** A demand met but for this share counts as met, against rounding of rates. */
const RATE_TOLERANCE = 1e-9;

/**
 * Fills GPUs with instances so that each demand gets its rate, on few GPUs. The linear program over all fillings of one
 * GPU is solved, its whole parts are taken, and what remains is solved again; near the end the filling that brings most at
 * current prices is taken instead. Then GPUs are taken out and their work is fitted into what is left over elsewhere.
 */
export function packMig(geometry: MigGeometry, demands: readonly MigDemand[]): MigPacking {
  const refusals = migRefusals(geometry, demands);
  if (refusals.length > 0) throw new Error(refusals.join('; '));
  const wanted = demands.filter((demand) => demand.rate > 0);
  if (wanted.length === 0) return { gpus: [], lowerBound: 0, fractionalBound: 0 };
  const fillings = new Fillings(geometry, wanted);
  const whole = solveCover(fillings.programFor(wanted.map((demand) => demand.rate)));
  const rounded = roundDown(fillings, wanted.map((demand) => demand.rate));
  const lowerBound = Math.max(1, Math.ceil(whole.lowerBound - RATE_TOLERANCE * whole.lowerBound));
  const kept = rounded.length > lowerBound ? squeeze(fillings, wanted, rounded, lowerBound) : rounded;
  return { gpus: kept.map((filling) => placed(geometry, filling)), lowerBound, fractionalBound: whole.lowerBound };
}

type Filling = readonly MigAssignment[];

/** The fillings of one GPU, by price or by what is still needed. */
class Fillings {
  readonly multisets: readonly MigMultiset[];
  private readonly names: readonly string[];
  /** For each profile, what one instance gives to each demand. */
  private readonly rates: readonly (readonly (MigOption | undefined)[])[];

  constructor(geometry: MigGeometry, private readonly demands: readonly MigDemand[]) {
    this.names = geometry.profiles.map((profile) => profile.name).filter((name) => demands.some((demand) => demand.options.some((option) => option.profile === name)));
    this.multisets = maximalMultisets(geometry, this.names);
    this.rates = this.names.map((name) => demands.map((demand) => demand.options.find((option) => option.profile === name)));
  }

  programFor(rates: readonly number[]): CoverProgram<Filling> {
    return {
      demand: rates,
      first: this.demands.map((_, row) => this.columnOf(this.fillWith(row))),
      best: (prices) => this.columnOf(this.mostWorth(prices)),
    };
  }

  columnOf(filling: Filling): CoverColumn<Filling> {
    return { cost: 1, gives: this.gives(filling), content: filling };
  }

  gives(filling: Filling): readonly number[] {
    const sums = new Map<string, number>();
    for (const { demand, option } of filling) sums.set(demand, (sums.get(demand) ?? 0) + option.rate);
    return this.demands.map((demand) => sums.get(demand.id) ?? 0);
  }

  /** The filling of one GPU that meets the most of what is needed, weighted by price; nothing counts beyond the need. */
  mostNeeded(prices: readonly number[], needed: readonly number[]): Filling {
    let best: Filling = [];
    let bestWorth = -1;
    for (const multiset of this.multisets) {
      const { filling, worth } = this.fillGreedily(multiset, prices, needed);
      if (worth > bestWorth) {
        best = filling;
        bestWorth = worth;
      }
    }
    return best;
  }

  private fillGreedily(multiset: MigMultiset, prices: readonly number[], needed: readonly number[]): { filling: Filling; worth: number } {
    const open = [...needed];
    const filling: MigAssignment[] = [];
    let worth = 0;
    for (let profile = this.names.length - 1; profile >= 0; profile -= 1) {
      for (let count = 0; count < (multiset[profile] as number); count += 1) {
        let bestRow = -1;
        let bestGain = 0;
        for (let row = 0; row < open.length; row += 1) {
          const gain = (prices[row] as number) * Math.min(open[row] as number, this.rates[profile]?.[row]?.rate ?? 0);
          if (gain > bestGain) {
            bestGain = gain;
            bestRow = row;
          }
        }
        const option = this.rates[profile]?.[bestRow];
        if (option === undefined) continue;
        open[bestRow] = Math.max(0, (open[bestRow] as number) - option.rate);
        worth += bestGain;
        filling.push({ demand: (this.demands[bestRow] as MigDemand).id, option });
      }
    }
    return { filling, worth };
  }

  private mostWorth(prices: readonly number[]): Filling {
    const bestByProfile = this.names.map((_, profile) => {
      let best: { readonly row: number; readonly worth: number } = { row: -1, worth: 0 };
      for (const [row, option] of (this.rates[profile] ?? []).entries()) {
        const worth = (option?.rate ?? 0) * (prices[row] as number);
        if (worth > best.worth) best = { row, worth };
      }
      return best;
    });
    const worthOf = (multiset: MigMultiset): number => multiset.reduce((sum, count, profile) => sum + count * (bestByProfile[profile]?.worth ?? 0), 0);
    const best = this.multisets.reduce((one, other) => (worthOf(other) > worthOf(one) ? other : one));
    return best.flatMap((count, profile) => this.repeat(profile, bestByProfile[profile]?.row ?? -1, count));
  }

  private fillWith(row: number): Filling {
    const rateOf = (multiset: MigMultiset): number => multiset.reduce((sum, count, profile) => sum + count * (this.rates[profile]?.[row]?.rate ?? 0), 0);
    const best = this.multisets.reduce((one, other) => (rateOf(other) > rateOf(one) ? other : one));
    return best.flatMap((count, profile) => this.repeat(profile, row, count));
  }

  private repeat(profile: number, row: number, count: number): MigAssignment[] {
    const option = this.rates[profile]?.[row];
    const demand = this.demands[row];
    return option === undefined || demand === undefined ? [] : Array.from({ length: count }, () => ({ demand: demand.id, option }));
  }
}

function roundDown(fillings: Fillings, rates: readonly number[]): Filling[] {
  const needed = [...rates];
  const taken: Filling[] = [];
  const isOpen = (): boolean => needed.some((rate, row) => rate > RATE_TOLERANCE * (rates[row] as number));
  const take = (filling: Filling): void => {
    taken.push(filling);
    for (const [row, given] of fillings.gives(filling).entries()) needed[row] = Math.max(0, (needed[row] as number) - given);
  };
  while (isOpen()) {
    const { amounts, prices } = solveCover(fillings.programFor(needed));
    const wholes = amounts.flatMap(({ column, amount }) => Array.from({ length: Math.floor(amount + 1e-6) }, () => column.content));
    if (wholes.length > 0) for (const filling of wholes) take(filling);
    else take(fillings.mostNeeded(prices, needed));
  }
  return taken;
}

/** Takes out one or two GPUs at a time and tries to do with one fewer; stops at the bound or when nothing helps. */
function squeeze(fillings: Fillings, demands: readonly MigDemand[], start: readonly Filling[], lowerBound: number): readonly Filling[] {
  let current = start;
  let improved = true;
  while (improved && current.length > lowerBound) {
    improved = false;
    for (const out of subsets(current.length)) {
      const kept = current.filter((_, index) => !out.includes(index));
      const needed = demands.map((demand) => demand.rate);
      for (const filling of kept) for (const [row, given] of fillings.gives(filling).entries()) needed[row] = Math.max(0, (needed[row] as number) - given);
      const again = roundDown(fillings, needed);
      if (again.length >= out.length) continue;
      current = [...kept, ...again];
      improved = true;
      break;
    }
  }
  return current;
}

/** Sets of indexes taken out at once; more than this are not tried in one round. */
const SUBSETS_MAX = 400;

function subsets(count: number): readonly (readonly number[])[] {
  const found: number[][] = Array.from({ length: count }, (_, index) => [index]);
  for (let size = 2; size <= 4; size += 1) {
    for (let first = 0; first + size <= count; first += 1) {
      for (let step = 1; first + step * (size - 1) < count; step += 1) found.push(Array.from({ length: size }, (_, at) => first + at * step));
    }
  }
  return found.slice(0, SUBSETS_MAX);
}

function placed(geometry: MigGeometry, filling: Filling): PackedGpu {
  const layout = layOut(geometry, filling.map(({ option }) => option.profile));
  if (layout === undefined) throw new Error(`No layout of ${geometry.gpuType} holds ${filling.map(({ option }) => option.profile).join(', ')}.`);
  const waiting = [...filling];
  return layout.map((instance) => {
    const index = waiting.findIndex(({ option }) => option.profile === instance.profile);
    const [assignment] = waiting.splice(index, 1);
    if (assignment === undefined || profileOf(geometry, instance.profile) === undefined) throw new Error(`The layout holds ${instance.profile}, which was not asked for.`);
    return { ...instance, demand: assignment.demand, option: assignment.option };
  });
}
