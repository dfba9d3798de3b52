import { performance } from 'node:perf_hooks';
import {
  ArrivalFleet,
  ArrivalPlanner,
  BalancedGradient,
  BestFit,
  DotProduct,
  FragmentationGradient,
  RandomChoice,
  TypicalWorkload,
  WHOLE_ACCELERATOR_MILLI,
  type ArrivalDemand,
  type ArrivalNode,
  type ArrivalPolicy,
} from '@penstock/domain-placement';
import { randomFrom, shuffled } from '../random.js';
import { numberIn, readTrace } from '../traces.js';

export type PolicyName = 'penstock' | 'fgd' | 'best_fit' | 'dot_product' | 'random';

export interface OpenbRun {
  readonly trace: string;
  readonly policy: PolicyName;
  readonly seed: number;
}

export interface OpenbResult extends OpenbRun {
  /** Share of all GPUs that was given away when arrivals reached 100 % and 130 % of the cluster. */
  readonly allocationAt100: number;
  readonly allocationAt130: number;
  /** One figure for each decision. */
  readonly decisionMs: Float64Array;
}

/** Arrivals go on until they want this much of the cluster, as the FGD authors do it. */
const ARRIVALS_UP_TO = 1.3;

/** A trace has one accelerator memory only, which does not limit anything: pods name compute alone. */
const UNLIMITED_VRAM_MIB = 0;

export function readNodes(): readonly ArrivalNode[] {
  return readTrace('openb-node-list-gpu.csv.gz')
    .map((row) => ({
      nodeId: row['sn'] ?? '',
      cpuMilli: numberIn(row, 'cpu_milli'),
      hostMemoryMib: numberIn(row, 'memory_mib'),
      accelerators: numberIn(row, 'gpu'),
      acceleratorType: row['model'] ?? '',
      vramMib: UNLIMITED_VRAM_MIB,
    }))
    .sort((one, other) => (one.nodeId < other.nodeId ? -1 : 1));
}

export function readPods(trace: string): readonly ArrivalDemand[] {
  return readTrace(`openb-pods-${trace}.csv.gz`).map((row) => ({
    cpuMilli: numberIn(row, 'cpu_milli'),
    hostMemoryMib: numberIn(row, 'memory_mib'),
    accelerators: numberIn(row, 'num_gpu'),
    computeMilli: numberIn(row, 'gpu_milli'),
    vramMib: UNLIMITED_VRAM_MIB,
    acceleratorTypes: (row['gpu_spec'] ?? '').split('|').filter((type) => type !== ''),
  }));
}

/** Shuffles the trace, adds random pods of it up to 130 % of the cluster, and places one by one; nothing ever leaves. */
export function runOpenb({ trace, policy, seed }: OpenbRun): OpenbResult {
  const nodes = readNodes();
  const pods = readPods(trace);
  const fleet = new ArrivalFleet(nodes);
  const planner = new ArrivalPlanner(fleet, policyOf(policy, pods, seed));
  const total = nodes.reduce((sum, node) => sum + node.accelerators, 0) * WHOLE_ACCELERATOR_MILLI;
  const decisions: number[] = [];
  let allocated = 0;
  let arrived = 0;
  let allocationAt100 = 0;
  for (const pod of arrivals(pods, seed, total)) {
    const wanted = pod.accelerators * pod.computeMilli;
    arrived += wanted;
    const started = performance.now();
    const place = planner.place(pod);
    decisions.push(performance.now() - started);
    if (place !== undefined) allocated += wanted;
    if (arrived <= total) allocationAt100 = allocated / total;
  }
  return { trace, policy, seed, allocationAt100, allocationAt130: allocated / total, decisionMs: Float64Array.from(decisions) };
}

function* arrivals(pods: readonly ArrivalDemand[], seed: number, totalMilli: number): Generator<ArrivalDemand> {
  const next = randomFrom(seed);
  let arrived = 0;
  for (const pod of shuffled(pods, next)) {
    arrived += pod.accelerators * pod.computeMilli;
    yield pod;
  }
  while (arrived < ARRIVALS_UP_TO * totalMilli) {
    const pod = pods[Math.floor(next() * pods.length)] as ArrivalDemand;
    arrived += pod.accelerators * pod.computeMilli;
    yield pod;
  }
}

function policyOf(name: PolicyName, pods: readonly ArrivalDemand[], seed: number): ArrivalPolicy {
  switch (name) {
    case 'penstock':
      return new BalancedGradient(new TypicalWorkload(pods));
    case 'fgd':
      return new FragmentationGradient(new TypicalWorkload(pods));
    case 'best_fit':
      return new BestFit();
    case 'dot_product':
      return new DotProduct();
    case 'random':
      return new RandomChoice(randomFrom(seed ^ 0x5eed));
  }
}
