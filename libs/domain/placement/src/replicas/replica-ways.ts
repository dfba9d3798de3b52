import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import type { FleetPool } from '../fleet/fleet-state.js';
import type { FleetPart } from '../fleet/fleet-types.js';
import type { PlacementDemand } from './placement-input.js';
import { MIB } from './running-fleet.js';

/** One way to serve a replica: what it takes in one pool. */
export interface ReplicaWay {
  readonly pool: number;
  readonly part: FleetPart;
}

/** Bytes of each accelerator of a replica of the demand. */
export function bytesOfEach(demand: PlacementDemand): number {
  return Math.ceil(demand.memoryBytes / acceleratorsOf(demand));
}

export function acceleratorsOf({ acceleratorCount, rules }: PlacementDemand): number {
  return acceleratorCount * rules.nodes;
}

/** What a replica of the demand takes in each pool that its hardware wishes admit, whether there is room or not. */
export function waysOf(demand: PlacementDemand, pools: readonly FleetPool[]): readonly ReplicaWay[] {
  return pools.flatMap((pool, index) => {
    const part = partIn(demand, pool);
    return part === undefined ? [] : [{ pool: index, part }];
  });
}

/** True when the demand's wishes for hardware name this kind, however much of it there is. */
export function namesType(demand: PlacementDemand, pool: FleetPool): boolean {
  const { acceleratorType, rules } = demand;
  if (rules.migProfile !== null && pool.sharing !== 'mig') {
    const slice = `-mig-${rules.migProfile}`;
    return pool.sharing === 'whole' && (acceleratorType === null ? pool.gpuType.endsWith(slice) : pool.gpuType === `${acceleratorType}${slice}`);
  }
  return acceleratorType === null || acceleratorType === pool.gpuType;
}

function partIn(demand: PlacementDemand, pool: FleetPool): FleetPart | undefined {
  if (!namesType(demand, pool)) return undefined;
  const { rules, acceleratorCount } = demand;
  const accelerators = acceleratorsOf(demand);
  const vramMib = bytesOfEach(demand) / MIB;
  // The memory of a CPU is that of its machine.
  const beside = pool.gpuType === 'cpu' ? vramMib * acceleratorCount : 0;
  const common = { accelerators, nodes: rules.nodes, cpuMilli: (rules.cpuMilli ?? 0) * rules.nodes, hostMemoryMib: ((rules.hostMemoryBytes ?? 0) / MIB + beside) * rules.nodes };
  if (pool.sharing === 'mig') {
    if (accelerators > 1) return undefined;
    const migProfile = rules.migProfile ?? pool.book?.smallestFor(vramMib, (rules.computeMilli ?? 0) / WHOLE_ACCELERATOR_MILLI);
    if (migProfile === undefined || (pool.book?.profile(migProfile)?.usableMib ?? -1) < vramMib) return undefined;
    return { ...common, computeMilli: 0, vramMib, migProfile };
  }
  const isWhole = pool.sharing === 'whole' || accelerators > 1;
  return { ...common, computeMilli: isWhole ? WHOLE_ACCELERATOR_MILLI : (rules.computeMilli ?? 0), vramMib, migProfile: null };
}
