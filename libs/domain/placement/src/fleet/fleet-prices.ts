import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { FleetPool } from './fleet-state.js';
import type { FleetDemand, FleetOption } from './fleet-types.js';

/** What an option takes of a pool, in GPUs' worth of compute and of memory. */
export interface OptionUse {
  readonly option: FleetOption;
  readonly pool: number;
  readonly compute: number;
  readonly memory: number;
}

/** Dollars per hour for a GPU's worth of compute and of memory in each pool, and what they prove. */
export interface FleetPrices {
  readonly compute: readonly number[];
  readonly memory: readonly number[];
  /** No plan that serves each endpoint by one of its options costs less. */
  readonly lowerBound: number;
}

/** Rounds of price finding; the step shrinks as one over the round. */
const ROUNDS = 400;
const FIRST_STEP = 0.5;

/** The pools in which each option of the demand could run. */
export function usesOf(demand: FleetDemand, pools: readonly FleetPool[]): readonly OptionUse[] {
  return demand.options.flatMap((option) =>
    pools.flatMap((pool, index) => {
      if (pool.gpuType !== option.gpuType || pool.sharing !== option.sharing || (pool.market === 'spot' && !demand.allowsSpot)) return [];
      return [{ option, pool: index, ...useOf(option, pool) }];
    }),
  );
}

function useOf(option: FleetOption, pool: FleetPool): { compute: number; memory: number } {
  let compute = 0;
  let memory = 0;
  for (const part of option.parts) {
    const shares = part.migProfile === null ? undefined : pool.book?.sharesOf(part.migProfile);
    compute += part.accelerators * (shares?.compute ?? part.computeMilli / WHOLE_ACCELERATOR_MILLI);
    memory += part.accelerators * (shares?.memory ?? part.vramMib / pool.vramMib);
  }
  return { compute, memory };
}

/**
 * Finds prices by the subgradient method on the Lagrangian of: a GPU has one unit of compute and one of memory, a pool has
 * so many GPUs, an endpoint takes one option. Any prices whose sum in a pool is the price of its GPU, plus what scarcity
 * adds, prove a bound; the best one found is kept.
 */
export function findPrices(uses: readonly (readonly OptionUse[])[], pools: readonly FleetPool[]): FleetPrices {
  const balance = pools.map(() => 0.5);
  const scarcity = pools.map(() => 0);
  let best: FleetPrices = { compute: pools.map((pool) => pool.pricePerGpu / 2), memory: pools.map((pool) => pool.pricePerGpu / 2), lowerBound: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    const compute = pools.map((pool, index) => (balance[index] as number) * (pool.pricePerGpu + (scarcity[index] as number)));
    const memory = pools.map((pool, index) => (1 - (balance[index] as number)) * (pool.pricePerGpu + (scarcity[index] as number)));
    const load = pools.map(() => ({ compute: 0, memory: 0 }));
    let bound = -pools.reduce((sum, pool, index) => sum + (scarcity[index] as number) * pool.gpus, 0);
    for (const choices of uses) {
      const use = cheapest(choices, compute, memory);
      if (use === undefined) continue;
      bound += priceOf(use, compute, memory);
      const total = load[use.pool] as { compute: number; memory: number };
      total.compute += use.compute;
      total.memory += use.memory;
    }
    if (bound > best.lowerBound) best = { compute, memory, lowerBound: bound };
    const step = FIRST_STEP / (1 + round / 10);
    for (const [index, pool] of pools.entries()) {
      const { compute: used, memory: held } = load[index] as { compute: number; memory: number };
      const most = Math.max(used, held, 1);
      balance[index] = Math.min(1, Math.max(0, (balance[index] as number) + (step * (used - held)) / most));
      const filled = ((balance[index] as number) * used + (1 - (balance[index] as number)) * held) / pool.gpus;
      scarcity[index] = Math.max(0, (scarcity[index] as number) + step * pool.pricePerGpu * (filled - 1));
    }
  }
  return best;
}

/** Packing reaches about this part of a full pool; what is chosen beyond it would have to go to whatever is left. */
const FILL_TARGET = 0.975;

/**
 * One use for each demand: the cheapest at the prices, but where more would choose a pool than fits, those go elsewhere
 * that lose least for what they free. undefined where a demand has no use.
 */
export function chooseUses(prices: FleetPrices, uses: readonly (readonly OptionUse[])[], pools: readonly FleetPool[]): readonly (OptionUse | undefined)[] {
  const chosen = uses.map((choices) => cheapest(choices, prices.compute, prices.memory));
  const load = pools.map(() => ({ compute: 0, memory: 0 }));
  const add = (use: OptionUse, sign: 1 | -1): void => {
    const total = load[use.pool] as { compute: number; memory: number };
    total.compute += sign * use.compute;
    total.memory += sign * use.memory;
  };
  for (const use of chosen) if (use !== undefined) add(use, 1);
  const limit = (pool: number): number => FILL_TARGET * (pools[pool] as FleetPool).gpus;
  const isOver = (pool: number, use?: OptionUse): boolean => Math.max((load[pool]?.compute ?? 0) + (use?.compute ?? 0), (load[pool]?.memory ?? 0) + (use?.memory ?? 0)) > limit(pool);
  for (const pool of pools.keys()) {
    if (!isOver(pool)) continue;
    const byRegret = chosen
      .flatMap((use, index) => {
        if (use?.pool !== pool) return [];
        const other = cheapest((uses[index] ?? []).filter((choice) => choice.pool !== pool), prices.compute, prices.memory);
        if (other === undefined) return [];
        return [{ index, use, other, regret: (priceOf(other, prices.compute, prices.memory) - priceOf(use, prices.compute, prices.memory)) / Math.max(use.compute, use.memory, 1e-9) }];
      })
      .sort((one, other) => one.regret - other.regret || one.index - other.index);
    for (const { index, use, other } of byRegret) {
      if (!isOver(pool)) break;
      if (isOver(other.pool, other)) continue;
      add(use, -1);
      add(other, 1);
      chosen[index] = other;
    }
  }
  return chosen;
}

export function priceOf(use: OptionUse, compute: readonly number[], memory: readonly number[]): number {
  return use.compute * (compute[use.pool] as number) + use.memory * (memory[use.pool] as number);
}

function cheapest(choices: readonly OptionUse[], compute: readonly number[], memory: readonly number[]): OptionUse | undefined {
  let best: OptionUse | undefined;
  let bestPrice = Number.POSITIVE_INFINITY;
  for (const use of choices) {
    const price = priceOf(use, compute, memory);
    if (price >= bestPrice) continue;
    best = use;
    bestPrice = price;
  }
  return best;
}
