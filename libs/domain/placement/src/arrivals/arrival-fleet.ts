import { WHOLE_ACCELERATOR_MILLI, type ArrivalDemand, type ArrivalNode } from './arrival-demand.js';

/** Where a demand was put: the node's index and the accelerators on it. */
export interface ArrivalPlace {
  readonly node: number;
  readonly accelerators: readonly number[];
}

/** What is free on each node, by index, while arrivals come and go. Nothing is ever given away twice. */
export class ArrivalFleet {
  readonly cpuFree: Float64Array;
  readonly memoryFree: Float64Array;
  /** Index of the first accelerator of each node in the two arrays below; one entry more than there are nodes. */
  readonly offset: Int32Array;
  readonly computeFree: Int32Array;
  readonly vramFree: Int32Array;
  /** The most CPU, in thousandths of a core, and the most accelerators of any node; what scores are measured against. */
  readonly largest: { readonly cpu: number; readonly accelerators: number };
  private readonly closed: Uint8Array;
  /** Nodes in the order in which they changed, so that scores are computed again for these only. */
  readonly changes: number[] = [];

  constructor(readonly nodes: readonly ArrivalNode[]) {
    this.cpuFree = Float64Array.from(nodes, (node) => node.cpuMilli);
    this.memoryFree = Float64Array.from(nodes, (node) => node.hostMemoryMib);
    this.largest = nodes.reduce((most, node) => ({ cpu: Math.max(most.cpu, node.cpuMilli), accelerators: Math.max(most.accelerators, node.accelerators) }), { cpu: 1, accelerators: 1 });
    this.closed = new Uint8Array(nodes.length);
    this.offset = new Int32Array(nodes.length + 1);
    for (const [index, node] of nodes.entries()) this.offset[index + 1] = (this.offset[index] ?? 0) + node.accelerators;
    const accelerators = this.offset[nodes.length] ?? 0;
    this.computeFree = new Int32Array(accelerators).fill(WHOLE_ACCELERATOR_MILLI);
    this.vramFree = new Int32Array(accelerators);
    for (const [index, node] of nodes.entries()) this.vramFree.fill(node.vramMib, this.offset[index], this.offset[index + 1]);
  }

  /** A cordoned or lost node takes nothing new. */
  close(node: number): void {
    this.closed[node] = 1;
    this.changes.push(node);
  }

  reopen(node: number): void {
    this.closed[node] = 0;
    this.changes.push(node);
  }

  /** Whether CPU, host memory and accelerators suffice; which accelerators is the policy's choice. */
  fits(node: number, demand: ArrivalDemand): boolean {
    if (this.closed[node] === 1) return false;
    if ((this.cpuFree[node] ?? 0) < demand.cpuMilli || (this.memoryFree[node] ?? 0) < demand.hostMemoryMib) return false;
    if (demand.accelerators === 0) return true;
    const type = this.nodes[node]?.acceleratorType ?? '';
    if (demand.acceleratorTypes.length > 0 && !demand.acceleratorTypes.includes(type)) return false;
    let fitting = 0;
    const end = this.offset[node + 1] ?? 0;
    for (let slot = this.offset[node] ?? 0; slot < end; slot += 1) if (this.acceleratorFits(slot, demand)) fitting += 1;
    return fitting >= demand.accelerators;
  }

  acceleratorFits(slot: number, demand: ArrivalDemand): boolean {
    return (this.computeFree[slot] ?? 0) >= demand.computeMilli && (this.vramFree[slot] ?? 0) >= demand.vramMib;
  }

  /** Whether nobody holds anything of the node. */
  isUntouched(node: number): boolean {
    const total = this.nodes[node];
    if (total === undefined || (this.cpuFree[node] as number) < total.cpuMilli || (this.memoryFree[node] as number) < total.hostMemoryMib) return false;
    const end = this.offset[node + 1] ?? 0;
    for (let slot = this.offset[node] ?? 0; slot < end; slot += 1) if ((this.computeFree[slot] as number) < WHOLE_ACCELERATOR_MILLI || (this.vramFree[slot] as number) < total.vramMib) return false;
    return true;
  }

  take(place: ArrivalPlace, demand: ArrivalDemand): void {
    this.shift(place.node, place.accelerators, demand, -1);
    this.changes.push(place.node);
  }

  release(place: ArrivalPlace, demand: ArrivalDemand): void {
    this.shift(place.node, place.accelerators, demand, 1);
    this.changes.push(place.node);
  }

  /** As `take` (-1) and `release` (1), but unnoticed: for trying a place out. */
  shift(node: number, accelerators: readonly number[], demand: ArrivalDemand, sign: 1 | -1): void {
    this.cpuFree[node] = (this.cpuFree[node] ?? 0) + sign * demand.cpuMilli;
    this.memoryFree[node] = (this.memoryFree[node] ?? 0) + sign * demand.hostMemoryMib;
    for (const accelerator of accelerators) {
      const slot = (this.offset[node] ?? 0) + accelerator;
      this.computeFree[slot] = (this.computeFree[slot] ?? 0) + sign * demand.computeMilli;
      this.vramFree[slot] = (this.vramFree[slot] ?? 0) + sign * demand.vramMib;
    }
  }
}
