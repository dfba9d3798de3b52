import { WHOLE_ACCELERATOR_MILLI, type ArrivalDemand } from '../arrivals/arrival-demand.js';
import { TypicalWorkload, type FragmentableFleet } from '../arrivals/typical-workload.js';
import type { FleetPart, FleetSeat } from '../fleet/fleet-types.js';
import { acceleratorsOf, bytesOfEach } from './replica-ways.js';
import type { PlacementDemand } from './placement-input.js';
import { MIB, type RunningFleet } from './running-fleet.js';

/** Demands beyond this many do not change what is typical. */
const DEMANDS_COUNTED_MAX = 20_000;

/**
 * The fragmentation gradient over the running fleet: how much compute the typical replica could no longer use once a part is
 * seated. Only parts that reserve compute have one; where none of the demands does, nothing is measured.
 */
export class FragmentationMeter {
  private readonly workload: TypicalWorkload | undefined;
  private readonly view: FragmentableFleet;
  private readonly cpuFree: Float64Array;

  constructor(private readonly fleet: RunningFleet, demands: readonly PlacementDemand[]) {
    const arrivals = demands.filter((demand) => demand.wanted > 0 && (demand.rules.computeMilli !== null || acceleratorsOf(demand) > 1)).slice(0, DEMANDS_COUNTED_MAX).map(asArrival);
    this.workload = arrivals.length === 0 ? undefined : new TypicalWorkload(arrivals);
    const { state } = fleet;
    this.cpuFree = new Float64Array(state.nodes.length);
    this.view = {
      nodes: state.nodes.map((node) => ({ acceleratorType: node.gpuType })), offset: state.firstGpu, computeFree: state.computeFree, vramFree: state.vramFree,
      cpuFree: this.cpuFree,
    };
  }

  /** In accelerators; negative where a gap is filled that nobody else could use. */
  growth(part: FleetPart, seat: FleetSeat): number {
    const { workload } = this;
    if (workload === undefined || part.migProfile !== null || part.computeMilli === 0) return 0;
    const { state } = this.fleet;
    const measure = (): number => seat.nodes.reduce((sum, node) => {
      // CPU is kept by machine, and the measure asks for a node's.
      this.cpuFree[node] = state.cpuFree[state.hostOf[node] as number] as number;
      return sum + workload.fragmentation(this.view, node);
    }, 0);
    const before = measure();
    state.take(part, seat);
    const after = measure();
    state.release(part, seat);
    return (after - before) / WHOLE_ACCELERATOR_MILLI;
  }
}

function asArrival(demand: PlacementDemand): ArrivalDemand {
  const { acceleratorType, acceleratorCount, rules } = demand;
  return {
    cpuMilli: rules.cpuMilli ?? 0, hostMemoryMib: (rules.hostMemoryBytes ?? 0) / MIB, accelerators: acceleratorCount,
    computeMilli: acceleratorsOf(demand) > 1 ? WHOLE_ACCELERATOR_MILLI : (rules.computeMilli ?? WHOLE_ACCELERATOR_MILLI), vramMib: bytesOfEach(demand) / MIB,
    acceleratorTypes: acceleratorType === null ? [] : [acceleratorType],
  };
}
