import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import { gpuTypeOf } from '../catalogue/gpu-types.js';
import { MIG_GEOMETRIES } from '../mig/mig-geometries.js';
import { LayoutBook } from './layout-book.js';
import type { FleetNode, FleetPart, FleetSeat } from './fleet-types.js';

/** Nodes that are the same to a price: GPU type, way of sharing, market. */
export interface FleetPool {
  readonly gpuType: string;
  readonly sharing: FleetNode['sharing'];
  readonly market: FleetNode['market'];
  readonly pricePerGpu: number;
  readonly vramMib: number;
  readonly nodes: readonly number[];
  readonly gpus: number;
  /** Layouts of its GPUs; null where they are shared otherwise. */
  readonly book: LayoutBook | null;
}

/** Who holds what of each GPU. The only place that changes it, so that nothing is given away twice. */
export class FleetState {
  readonly pools: readonly FleetPool[];
  readonly poolOf: Int32Array;
  /** Number of each node's first GPU; one entry more than there are nodes. */
  readonly firstGpu: Int32Array;
  readonly nodeOf: Int32Array;
  /** Free CPU and memory of each machine, by its number in `hostOf`. */
  readonly cpuFree: Float64Array;
  readonly memoryFree: Float64Array;
  /** The machine of each node: the number of the first node on it. */
  readonly hostOf: Int32Array;
  readonly computeFree: Int32Array;
  /** In MiB, with fractions: a power of two divides bytes without loss. */
  readonly vramFree: Float64Array;
  readonly layout: Int32Array;
  /** Parts on each GPU. */
  readonly owners: Int32Array;
  /** Untouched GPUs of each node. */
  readonly wholeFree: Int32Array;
  readonly closed: Uint8Array;
  /** GPUs in use, by pool. */
  readonly open: readonly Set<number>[];
  /** Those of them on which something is left, by pool. */
  readonly gaps: readonly Set<number>[];

  constructor(readonly nodes: readonly FleetNode[]) {
    this.firstGpu = new Int32Array(nodes.length + 1);
    for (const [index, node] of nodes.entries()) this.firstGpu[index + 1] = (this.firstGpu[index] as number) + node.gpus;
    const gpus = this.firstGpu[nodes.length] as number;
    this.nodeOf = new Int32Array(gpus);
    this.computeFree = new Int32Array(gpus).fill(WHOLE_ACCELERATOR_MILLI);
    this.vramFree = new Float64Array(gpus);
    this.layout = new Int32Array(gpus);
    this.owners = new Int32Array(gpus);
    this.hostOf = hostsOf(nodes);
    this.cpuFree = Float64Array.from(nodes, (node) => node.cpuMilli);
    this.memoryFree = Float64Array.from(nodes, (node) => node.hostMemoryMib);
    this.wholeFree = Int32Array.from(nodes, (node) => node.gpus);
    this.closed = Uint8Array.from(nodes, (node) => (node.isCordoned ? 1 : 0));
    this.poolOf = new Int32Array(nodes.length);
    this.pools = this.poolNodes();
    this.open = this.pools.map(() => new Set<number>());
    this.gaps = this.pools.map(() => new Set<number>());
    for (const [index, node] of nodes.entries()) {
      this.nodeOf.fill(index, this.firstGpu[index], this.firstGpu[index + 1]);
      this.vramFree.fill(node.vramMib, this.firstGpu[index], this.firstGpu[index + 1]);
    }
  }

  /** Dollars per hour for every GPU that somebody uses. */
  cost(): number {
    return this.pools.reduce((sum, pool, index) => sum + pool.pricePerGpu * (this.open[index]?.size ?? 0), 0);
  }

  gpusInUse(): number {
    return this.open.reduce((sum, open) => sum + open.size, 0);
  }

  poolOfGpu(gpu: number): number {
    return this.poolOf[this.nodeOf[gpu] as number] as number;
  }

  hostFits(node: number, part: FleetPart): boolean {
    const host = this.hostOf[node] as number;
    return this.closed[node] === 0 && (this.cpuFree[host] as number) >= part.cpuMilli / part.nodes && (this.memoryFree[host] as number) >= part.hostMemoryMib / part.nodes;
  }

  take(part: FleetPart, seat: FleetSeat): void {
    this.move(part, seat, -1);
  }

  release(part: FleetPart, seat: FleetSeat): void {
    this.move(part, seat, 1);
  }

  private move(part: FleetPart, seat: FleetSeat, sign: 1 | -1): void {
    for (const node of seat.nodes) {
      const host = this.hostOf[node] as number;
      this.cpuFree[host] = (this.cpuFree[host] as number) + (sign * part.cpuMilli) / part.nodes;
      this.memoryFree[host] = (this.memoryFree[host] as number) + (sign * part.hostMemoryMib) / part.nodes;
    }
    for (const gpu of seat.gpus) {
      this.owners[gpu] = (this.owners[gpu] as number) - sign;
      const node = this.nodeOf[gpu] as number;
      const pool = this.poolOf[node] as number;
      const isInUse = (this.owners[gpu] as number) > 0;
      if (isInUse !== this.open[pool]?.has(gpu)) {
        this.wholeFree[node] = (this.wholeFree[node] as number) + (isInUse ? -1 : 1);
        if (isInUse) this.open[pool]?.add(gpu);
        else this.open[pool]?.delete(gpu);
      }
      if (part.migProfile === null) {
        this.computeFree[gpu] = (this.computeFree[gpu] as number) + sign * part.computeMilli;
        this.vramFree[gpu] = (this.vramFree[gpu] as number) + sign * part.vramMib;
      } else this.moveInstance(gpu, pool, part.migProfile, seat.start ?? 0, sign);
      if (isInUse && this.hasGap(gpu, pool)) this.gaps[pool]?.add(gpu);
      else this.gaps[pool]?.delete(gpu);
    }
  }

  private hasGap(gpu: number, pool: number): boolean {
    const book = this.pools[pool]?.book;
    if (book !== null && book !== undefined && this.computeFree[gpu] === WHOLE_ACCELERATOR_MILLI) return book.room(this.layout[gpu] as number) > 0;
    return (this.computeFree[gpu] as number) > 0 && (this.vramFree[gpu] as number) > 0;
  }

  private moveInstance(gpu: number, pool: number, profile: string, start: number, sign: 1 | -1): void {
    const book = this.pools[pool]?.book;
    if (book === null || book === undefined) throw new Error(`GPU ${gpu} has no MIG geometry.`);
    const before = this.layout[gpu] as number;
    this.layout[gpu] = sign === 1 ? book.remove(before, profile, start) : book.place(before, profile, start);
  }

  private poolNodes(): readonly FleetPool[] {
    const byKey = new Map<string, number[]>();
    for (const [index, node] of this.nodes.entries()) {
      const key = [node.gpuType, node.sharing, node.market, node.pricePerGpu, node.vramMib].join();
      byKey.set(key, [...(byKey.get(key) ?? []), index]);
    }
    return [...byKey.values()].map((members, pool) => {
      for (const member of members) this.poolOf[member] = pool;
      const { gpuType, sharing, migGeometry, market, pricePerGpu, vramMib } = this.nodes[members[0] as number] as FleetNode;
      return { gpuType, sharing, market, pricePerGpu, vramMib, nodes: members, gpus: members.reduce((sum, member) => sum + (this.nodes[member] as FleetNode).gpus, 0), book: sharing === 'mig' ? bookOf(gpuType, migGeometry) : null };
    });
  }
}

function hostsOf(nodes: readonly FleetNode[]): Int32Array {
  const first = new Map<string, number>();
  return Int32Array.from(nodes, ({ host }, index) => {
    if (host === undefined) return index;
    const known = first.get(host);
    if (known === undefined) first.set(host, index);
    return known ?? index;
  });
}

function bookOf(gpuType: string, migGeometry: string | undefined): LayoutBook {
  const name = migGeometry ?? gpuTypeOf(gpuType)?.migGeometry ?? gpuType;
  const geometry = MIG_GEOMETRIES.find((one) => one.gpuType === name);
  if (geometry === undefined) throw new Error(`${gpuType} cannot be partitioned: use it whole or by shares.`);
  return new LayoutBook(geometry);
}
