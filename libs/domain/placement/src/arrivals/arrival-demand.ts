/**
 * What one arriving replica takes from a node. Compute is in thousandths of one accelerator, memory in MiB, CPU in
 * thousandths of one core.
 */
export interface ArrivalDemand {
  readonly cpuMilli: number;
  readonly hostMemoryMib: number;
  /** 0 for work without an accelerator. */
  readonly accelerators: number;
  /** Of each accelerator; 1000 is a whole one. More than one accelerator is always taken whole. */
  readonly computeMilli: number;
  /** Device memory of each accelerator; 0 where compute alone counts. */
  readonly vramMib: number;
  /** Types that will do; an empty list allows any. */
  readonly acceleratorTypes: readonly string[];
}

/** A node as arrivals see it: what it has in all. Every accelerator of a node has the same type and memory. */
export interface ArrivalNode {
  readonly nodeId: string;
  readonly cpuMilli: number;
  readonly hostMemoryMib: number;
  readonly accelerators: number;
  readonly acceleratorType: string;
  readonly vramMib: number;
}

export const WHOLE_ACCELERATOR_MILLI = 1_000;

/** Demands with the same key are the same to every score. */
export function demandKey(demand: ArrivalDemand): string {
  return [demand.cpuMilli, demand.hostMemoryMib, demand.accelerators, demand.computeMilli, demand.vramMib, demand.acceleratorTypes.join('|')].join(',');
}
