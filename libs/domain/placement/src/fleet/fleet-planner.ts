import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import { chooseUses, findPrices, priceOf, usesOf, type FleetPrices, type OptionUse } from './fleet-prices.js';
import { FleetState } from './fleet-state.js';
import { domainLimit, type FleetAssignment, type FleetDemand, type FleetNode, type FleetPart, type FleetRefusal, type SeatedPart } from './fleet-types.js';
import { findSeat, isFree, NO_GPU } from './find-seat.js';

export interface FleetPlanResult {
  readonly refusals: readonly FleetRefusal[];
  /** Dollars per hour of the GPUs in use. */
  readonly cost: number;
  /** No plan that serves the same endpoints, each by one of its options, costs less. */
  readonly lowerBound: number;
}

/** An endpoint, the way of serving it that is cheapest at the prices, and the seats that were found so far. */
interface Choice {
  readonly demand: FleetDemand;
  readonly use: OptionUse;
  /** All its ways, the cheapest first. */
  readonly ranked: readonly OptionUse[];
  readonly seats: (SeatedPart | undefined)[];
}

/** Ways to serve one arrival that are compared, the cheapest at current prices first; more only while none has room. */
const USES_TRIED_MAX = 4;

/** An arrival pays this part of each GPU that it opens, beside the price of what it uses: others will fill the rest. */
const OPENING_SHARE = 0.35;

/**
 * Keeps a fleet packed: all endpoints at once, then arrivals, departures and losses one by one. Endpoints are placed whole
 * or not at all. The same calls in the same order give the same fleet.
 */
export class FleetPlanner {
  readonly state: FleetState;
  readonly assignments = new Map<string, FleetAssignment>();
  /** Parts on each GPU in use: the endpoint and which of its parts. */
  private readonly tenants = new Map<number, Map<string, number>>();
  /** Failure domains of each pool. */
  private readonly domains: readonly number[];
  private prices: FleetPrices;

  constructor(nodes: readonly FleetNode[]) {
    this.state = new FleetState(nodes);
    this.domains = this.state.pools.map((pool) => new Set(pool.nodes.map((node) => this.domainOf(node))).size);
    this.prices = findPrices([], this.state.pools);
  }

  /** Places everything at once; demands that have no place are refused, each with its reason. */
  planAll(demands: readonly FleetDemand[]): FleetPlanResult {
    const uses = demands.map((demand) => usesOf(demand, this.state.pools));
    this.prices = findPrices(uses, this.state.pools);
    const choices = chooseUses(this.prices, uses, this.state.pools);
    const chosen = demands.flatMap((demand, index) => {
      const ranked = this.byPrice(uses[index] ?? []);
      const use = choices[index];
      return use === undefined ? [] : [{ demand, use, ranked, seats: new Array<SeatedPart | undefined>(use.option.parts.length).fill(undefined) }];
    });
    const byCost = [...this.state.pools.keys()].sort((one, other) => (this.state.pools[other]?.pricePerGpu ?? 0) - (this.state.pools[one]?.pricePerGpu ?? 0));
    for (const pool of byCost) this.packPool(chosen.filter((choice) => choice.use.pool === pool), pool, byCost.slice(0, byCost.indexOf(pool)));
    const refusals: FleetRefusal[] = [];
    for (const { demand, use, seats } of chosen) {
      if (this.assignments.has(demand.endpointId)) continue;
      const placed = seats.filter((seat) => seat !== undefined);
      if (placed.length === seats.length) this.settle({ demand, option: use.option, seats: placed });
      else for (const { part, seat } of placed) this.state.release(part, seat);
    }
    for (const demand of demands) {
      if (this.assignments.has(demand.endpointId)) continue;
      const outcome = this.arrive(demand);
      if ('reason' in outcome) refusals.push(outcome);
    }
    return { refusals, cost: this.state.cost(), lowerBound: this.lowerBound() };
  }

  /**
   * Seats what chose the pool, the largest first. What fits into a gap on dearer GPUs, which are packed before, goes there
   * instead and costs nothing.
   */
  private packPool(choices: readonly Choice[], pool: number, dearer: readonly number[]): void {
    const sizeOfChoice = ({ use }: Choice): number => use.option.parts.reduce((sum, part) => sum + sizeOf(part, use, this.state), 0);
    const left = [...choices].sort((one, other) => sizeOfChoice(other) - sizeOfChoice(one)).filter(({ demand, ranked, use }) => {
      if (dearer.length === 0 || use.option.parts.length > 1) return true;
      for (const other of ranked) {
        if (!dearer.includes(other.pool)) continue;
        const found = this.tryUse(demand, other, NO_GPU);
        if (found === undefined) continue;
        this.settle({ demand, option: other.option, seats: found.seats });
        return false;
      }
      return true;
    });
    const units = left.flatMap((choice) => choice.use.option.parts.map((part, index) => ({ choice, part, index, size: sizeOf(part, choice.use, this.state) })));
    units.sort((one, other) => other.size - one.size || (one.choice.demand.endpointId < other.choice.demand.endpointId ? -1 : 1) || one.index - other.index);
    for (const { choice, part, index } of units) {
      const placed = choice.seats.filter((seat) => seat !== undefined);
      const seat = findSeat(this.state, pool, part, this.allowed(choice.demand, pool, choice.use.option.parts.length, placed));
      if (seat === undefined) continue;
      this.state.take(part, seat);
      choice.seats[index] = { part, seat };
    }
  }

  /** The bound for the endpoints that are placed now. */
  lowerBound(): number {
    return findPrices([...this.assignments.values()].map(({ demand }) => usesOf(demand, this.state.pools)), this.state.pools).lowerBound;
  }

  /** Places one endpoint where it adds least to the cost at current prices. */
  arrive(demand: FleetDemand): FleetAssignment | FleetRefusal {
    let best: { readonly assignment: FleetAssignment; readonly price: number } | undefined;
    for (const [rank, use] of this.byPrice(usesOf(demand, this.state.pools)).entries()) {
      if (rank >= USES_TRIED_MAX && best !== undefined) break;
      const found = this.tryUse(demand, use);
      if (found === undefined) continue;
      for (const { part, seat } of found.seats) this.state.release(part, seat);
      const pool = this.state.pools[use.pool];
      const price = priceOf(use, this.prices.compute, this.prices.memory) + found.opened * OPENING_SHARE * (pool?.pricePerGpu ?? 0);
      if (best === undefined || price < best.price) best = { assignment: { demand, option: use.option, seats: found.seats }, price };
    }
    if (best === undefined) return { endpointId: demand.endpointId, reason: this.whyNot(demand) };
    for (const { part, seat } of best.assignment.seats) this.state.take(part, seat);
    this.settle(best.assignment);
    return best.assignment;
  }

  /** Takes a seat that somebody has already; false when it is taken, is not there, or the node cannot hold it beside what it holds. */
  adopt(demand: FleetDemand, { part, seat }: SeatedPart): boolean {
    const [option] = demand.options;
    if (option === undefined || !isFree(this.state, part, seat)) return false;
    this.state.take(part, seat);
    this.settle({ demand, option, seats: [{ part, seat }] });
    return true;
  }

  /** Frees all that the endpoint holds. */
  depart(endpointId: string): void {
    const assignment = this.assignments.get(endpointId);
    if (assignment === undefined) return;
    this.assignments.delete(endpointId);
    for (const [index, { part, seat }] of assignment.seats.entries()) {
      this.state.release(part, seat);
      for (const gpu of seat.gpus) this.forget(gpu, endpointId, index);
    }
  }

  /** Closes every node of the domain and places what stood there somewhere else. */
  loseDomain(failureDomain: string): { readonly moved: readonly string[]; readonly refusals: readonly FleetRefusal[] } {
    const lost = new Set(this.state.nodes.flatMap((node, index) => (node.failureDomain === failureDomain ? [index] : [])));
    for (const node of lost) this.state.closed[node] = 1;
    const hit = [...this.assignments.values()].filter(({ seats }) => seats.some(({ seat }) => seat.nodes.some((node) => lost.has(node))));
    const refusals: FleetRefusal[] = [];
    for (const { demand } of hit) this.depart(demand.endpointId);
    for (const { demand } of hit) {
      const outcome = this.arrive(demand);
      if ('reason' in outcome) refusals.push(outcome);
    }
    return { moved: hit.map(({ demand }) => demand.endpointId), refusals };
  }

  /**
   * Empties GPUs that are used little by moving what they hold into gaps on others, `movesMax` moves at most. A GPU is
   * emptied whole or left as it is. Returns the endpoints that moved; each move costs its caller a drain.
   */
  consolidate(movesMax: number): readonly string[] {
    const moved: string[] = [];
    for (const [pool, open] of this.state.open.entries()) {
      const candidates = [...open].map((gpu) => ({ gpu, used: this.usedShare(gpu, pool) })).sort((one, other) => one.used - other.used || one.gpu - other.gpu);
      for (const { gpu } of candidates) {
        const tenants = [...(this.tenants.get(gpu)?.keys() ?? [])];
        if (tenants.length === 0 || moved.length + tenants.length > movesMax) continue;
        if (this.emptyGpu(gpu, tenants)) moved.push(...tenants);
      }
    }
    return moved;
  }

  /** Moves all tenants of the GPU into gaps, or puts everything back as it was. */
  private emptyGpu(gpu: number, tenants: readonly string[]): boolean {
    const before = tenants.flatMap((endpointId) => this.assignments.get(endpointId) ?? []);
    if (before.some(({ seats }) => seats.some(({ seat }) => seat.gpus.length > 1 && seat.gpus.includes(gpu)))) return false;
    const after: FleetAssignment[] = [];
    for (const assignment of before) {
      for (const { part, seat } of assignment.seats) if (seat.gpus.includes(gpu)) this.state.release(part, seat);
      const again = this.reseat(assignment, gpu);
      if (again === undefined) {
        this.putBack(before.slice(0, after.length + 1), after, gpu);
        return false;
      }
      after.push(again);
    }
    for (const [index, assignment] of before.entries()) {
      for (const [at, { seat }] of assignment.seats.entries()) for (const each of seat.gpus) this.forget(each, assignment.demand.endpointId, at);
      this.settle(after[index] as FleetAssignment);
    }
    return true;
  }

  /** Undoes the moves of `after`, which were taken, and takes what `before` had on the GPU. */
  private putBack(before: readonly FleetAssignment[], after: readonly FleetAssignment[], gpu: number): void {
    for (const [index, assignment] of after.entries()) {
      const kept = new Set(before[index]?.seats);
      for (const seated of assignment.seats) if (!kept.has(seated)) this.state.release(seated.part, seated.seat);
    }
    for (const { seats } of before) for (const { part, seat } of seats) if (seat.gpus.includes(gpu)) this.state.take(part, seat);
  }

  /** New places in gaps for what stood on the emptied GPU, or any other way to serve the endpoint in gaps. Takes them. */
  private reseat(assignment: FleetAssignment, emptied: number): FleetAssignment | undefined {
    const { demand, option, seats } = assignment;
    const placed = seats.filter(({ seat }) => !seat.gpus.includes(emptied));
    const keptCount = placed.length;
    for (const { part, seat } of seats) {
      if (!seat.gpus.includes(emptied)) continue;
      const pool = this.state.poolOf[seat.nodes[0] as number] as number;
      const found = findSeat(this.state, pool, part, this.allowed(demand, pool, seats.length, placed), emptied);
      if (found === undefined) break;
      this.state.take(part, found);
      placed.push({ part, seat: found });
    }
    if (placed.length === seats.length) return { demand, option, seats: placed };
    for (const { part, seat } of placed.slice(keptCount)) this.state.release(part, seat);
    if (keptCount > 0) return undefined;
    for (const use of this.byPrice(usesOf(demand, this.state.pools))) {
      const found = this.tryUse(demand, use, emptied);
      if (found !== undefined) return { demand, option: use.option, seats: found.seats };
    }
    return undefined;
  }

  /** Takes a seat for every part of the option, or none. */
  private tryUse(demand: FleetDemand, use: OptionUse, inGapsBut?: number): { readonly seats: readonly SeatedPart[]; readonly opened: number } | undefined {
    const seats: SeatedPart[] = [];
    let opened = 0;
    for (const part of use.option.parts) {
      const found = findSeat(this.state, use.pool, part, this.allowed(demand, use.pool, use.option.parts.length, seats), inGapsBut);
      if (found === undefined) {
        for (const { part: taken, seat } of seats) this.state.release(taken, seat);
        return undefined;
      }
      opened += found.opened;
      this.state.take(part, found);
      seats.push({ part, seat: found });
    }
    return { seats, opened };
  }

  /** Pins, taints, and no more of the endpoint's replicas in one failure domain than its limit, where the pool has several. */
  private allowed(demand: FleetDemand, pool: number, replicas: number, placed: readonly SeatedPart[]): (node: number) => boolean {
    const inDomain = new Map<string, number>();
    for (const { seat } of placed) for (const domain of new Set(seat.nodes.map((node) => this.domainOf(node)))) inDomain.set(domain, (inDomain.get(domain) ?? 0) + 1);
    const limit = demand.perDomainMax ?? ((this.domains[pool] ?? 1) > 1 ? domainLimit(replicas) : Number.POSITIVE_INFINITY);
    return (index) => {
      const node = this.state.nodes[index];
      if (node === undefined || (demand.pinnedNodeIds !== null && !demand.pinnedNodeIds.includes(node.nodeId))) return false;
      if (!node.taints.every((taint) => demand.tolerations.includes(taint))) return false;
      return (inDomain.get(node.failureDomain) ?? 0) < limit;
    };
  }

  private byPrice(uses: readonly OptionUse[]): OptionUse[] {
    const { compute, memory } = this.prices;
    return [...uses].sort((one, other) => priceOf(one, compute, memory) - priceOf(other, compute, memory) || one.pool - other.pool);
  }

  private settle(assignment: FleetAssignment): void {
    this.assignments.set(assignment.demand.endpointId, assignment);
    for (const [index, { seat }] of assignment.seats.entries()) {
      for (const gpu of seat.gpus) {
        const tenants = this.tenants.get(gpu) ?? new Map<string, number>();
        tenants.set(assignment.demand.endpointId, index);
        this.tenants.set(gpu, tenants);
      }
    }
  }

  private forget(gpu: number, endpointId: string, index: number): void {
    const tenants = this.tenants.get(gpu);
    if (tenants?.get(endpointId) === index) tenants.delete(endpointId);
    if (tenants?.size === 0) this.tenants.delete(gpu);
  }

  private domainOf(node: number): string {
    return this.state.nodes[node]?.failureDomain ?? '';
  }

  private usedShare(gpu: number, pool: number): number {
    const info = this.state.pools[pool];
    if (info?.book !== null && info?.book !== undefined && this.state.layout[gpu] !== 0) return info.book.layoutOf(this.state.layout[gpu] as number).reduce((sum, { profile }) => sum + (info.book?.sharesOf(profile)?.memory ?? 0), 0);
    return 2 - (this.state.computeFree[gpu] as number) / WHOLE_ACCELERATOR_MILLI - (this.state.vramFree[gpu] as number) / (info?.vramMib ?? 1);
  }

  private whyNot(demand: FleetDemand): string {
    if (demand.options.length === 0) return demand.hint;
    const uses = usesOf(demand, this.state.pools);
    const wanted = [...new Set(demand.options.map((option) => option.gpuType))].join(', ');
    if (uses.length === 0) return `no node has ${wanted}${demand.allowsSpot ? '' : ' on demand'}: add one, or allow other hardware`;
    const nodes = uses.flatMap((use) => this.state.pools[use.pool]?.nodes ?? []).filter((node, index, all) => all.indexOf(node) === index);
    const closed = nodes.filter((node) => this.state.closed[node] === 1).length;
    const forbidden = nodes.filter((node) => !this.allowed(demand, this.state.poolOf[node] as number, 1, [])(node)).length;
    const rest = nodes.length - closed - forbidden;
    const least = Math.min(...demand.options.map((option) => Math.max(...option.parts.map((part) => part.accelerators / part.nodes))));
    const need = least > 1 ? `${least} untouched GPUs in one NVLink island` : 'one GPU with room';
    return `${nodes.length} nodes have ${wanted}: ${closed} are closed, ${forbidden} are excluded by pins or taints, ${Math.max(0, rest)} do not have ${need}`;
  }
}

/** Larger first: gangs, then whole GPUs, then by the larger of the two shares. */
function sizeOf(part: FleetPart, use: OptionUse, state: FleetState): number {
  const pool = state.pools[use.pool];
  const shares = part.migProfile === null ? undefined : pool?.book?.sharesOf(part.migProfile);
  return part.accelerators * Math.max(shares?.compute ?? part.computeMilli / WHOLE_ACCELERATOR_MILLI, shares?.memory ?? part.vramMib / (pool?.vramMib ?? 1));
}

