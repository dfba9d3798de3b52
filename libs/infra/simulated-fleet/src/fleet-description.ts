import { WHOLE_COMPUTE_MILLI, type NodeJoinedV2 } from '@penstock/contract-events';
import { gpuTypeOf, layoutProblems, MIG_GEOMETRIES, NODE_SHAPES, nodeShapeOf, type GpuType, type MigGeometry, type MigInstance, type MigLayout, type NodeShape } from '@penstock/domain-placement';
import { acceleratorTypeOf } from '@penstock/domain-serving';
import { z } from 'zod';

const NODES_MAX = 10_000;
const MEBIBYTE = 1_048_576;
const GIGABYTE = 1_000_000_000;
const ENGINE_VERSION = 'simulated';

const migInstance = z.strictObject({ profile: z.string().max(30), start: z.int().min(0).max(7) });

const nodeGroup = z.strictObject({
  /** A shape of the catalogue, such as `hgx-8xH100-SXM`. */
  shape: z.string().max(50),
  count: z.int().min(1).max(NODES_MAX).default(1),
  market: z.enum(['on_demand', 'spot']).default('on_demand'),
  taints: z.array(z.string().min(1).max(200)).max(50).default([]),
  /** This many nodes in a row share a rack, and fail with it. */
  nodesPerDomain: z.int().min(1).max(1_000).default(4),
  /** Whether GPUs that can be partitioned are in MIG mode, and the instances of each at the start; null leaves them whole. */
  mig: z.array(migInstance).max(8).nullable().default(null),
  /** The node's network, in gigabytes per second; 25 Gbit/s by default. */
  networkGBps: z.number().positive().max(1_000).default(3.1),
  /** How fast weights come from the node's disk: NVMe gives 3 to 6. */
  storageGBps: z.number().positive().max(1_000).default(3),
  /** What of the disk keeps artifacts. */
  cacheGB: z.number().positive().max(1_000_000).default(3_500),
});

/** A fleet that does not exist, as a person writes it down. Every number has a default but the shapes. */
export const fleetDescription = z.strictObject({
  /** Stands in every node id, so that two such fleets can be in one installation. */
  name: z.string().regex(/^[a-z0-9-]{1,30}$/).default('sim'),
  nodes: z.array(nodeGroup).min(1).max(100),
  /** What all pulls together get from where artifacts come from. */
  registryGBps: z.number().positive().max(100_000).default(50),
  /** What every duration is multiplied with: 0.1 makes the fleet ten times as fast. */
  timeScale: z.number().positive().max(1_000).default(1),
  /** What jitter is drawn from. */
  seed: z.int().min(0).default(1),
});
export type FleetDescription = z.output<typeof fleetDescription>;
export type FleetDescriptionInput = z.input<typeof fleetDescription>;

/** Thrown for a description that makes no fleet; names the group, the value and what it may be. */
export class FleetDescriptionError extends RangeError {
  override readonly name = 'FleetDescriptionError';
}

/** One machine of the fleet with what is fixed about it. */
export interface MachineSpec {
  readonly nodeId: string;
  readonly hostname: string;
  readonly domain: string;
  readonly market: 'on_demand' | 'spot';
  readonly taints: readonly string[];
  readonly shape: NodeShape;
  readonly gpu: GpuType;
  /** Undefined for a GPU that cannot be partitioned. */
  readonly geometry: MigGeometry | undefined;
  /** Null where GPUs are whole. */
  readonly layout: MigLayout | null;
  readonly networkBps: number;
  readonly storageBps: number;
  readonly cacheBytes: number;
}

/** Reads and checks a description. Throws {@link FleetDescriptionError}. */
export function readFleetDescription(value: unknown): FleetDescription {
  const parsed = fleetDescription.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new FleetDescriptionError(`The fleet description is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'it cannot be read'}`);
}

/** The machines of a fleet, always the same for the same description. Throws {@link FleetDescriptionError}. */
export function machinesOf(description: FleetDescription): readonly MachineSpec[] {
  const machines: MachineSpec[] = [];
  for (const [index, group] of description.nodes.entries()) {
    const shape = nodeShapeOf(group.shape);
    if (shape === undefined) throw new FleetDescriptionError(`nodes.${index}.shape is ${group.shape}: take one of ${NODE_SHAPES.map((one) => one.shape).join(', ')}.`);
    const gpu = gpuTypeOf(shape.gpuType);
    if (gpu === undefined) throw new FleetDescriptionError(`nodes.${index}.shape ${group.shape} has ${shape.gpuType}, which the catalogue does not know.`);
    const geometry = MIG_GEOMETRIES.find((one) => one.gpuType === gpu.migGeometry);
    checkLayout(index, gpu, geometry, group.mig);
    if (machines.length + group.count > NODES_MAX) throw new FleetDescriptionError(`The description has more than ${NODES_MAX} nodes; lower nodes.${index}.count.`);
    for (let count = 0; count < group.count; count += 1) {
      const number = machines.length + 1;
      machines.push({
        nodeId: `${description.name}-${number}`, hostname: `${description.name}-${number}`, domain: `${description.name}-rack-${index}-${Math.floor(count / group.nodesPerDomain)}`,
        market: group.market, taints: group.taints, shape, gpu, geometry, layout: group.mig,
        networkBps: group.networkGBps * GIGABYTE, storageBps: group.storageGBps * GIGABYTE, cacheBytes: group.cacheGB * GIGABYTE,
      });
    }
  }
  return machines;
}

function checkLayout(index: number, gpu: GpuType, geometry: MigGeometry | undefined, layout: MigLayout | null): void {
  if (layout === null) return;
  if (geometry === undefined) throw new FleetDescriptionError(`nodes.${index}.mig: ${gpu.type} cannot be partitioned; leave mig out.`);
  const [problem] = layoutProblems(geometry, layout);
  if (problem !== undefined) throw new FleetDescriptionError(`nodes.${index}.mig: ${problem}.`);
}

export type Accelerator = NodeJoinedV2['accelerators'][number];

/** What engines are told to use a MIG instance by. */
export function uuidOf(acceleratorId: string, { profile, start }: MigInstance): string {
  return `MIG-${acceleratorId}-${profile}-${start}`;
}

/** What the node says of itself, with the layout of each GPU. */
export function reportOf(machine: MachineSpec, layouts: readonly (MigLayout | null)[], agentVersion: string): NodeJoinedV2 {
  const { shape, gpu, market } = machine;
  const dollars = market === 'spot' ? gpu.price.spot : gpu.price.onDemand;
  return {
    nodeId: machine.nodeId,
    hostname: machine.hostname,
    accelerators: layouts.map((layout, index) => acceleratorOf(machine, index, layout)),
    cpuCores: shape.cpuMilli / 1_000,
    memoryBytes: shape.hostMemoryMib * MEBIBYTE,
    engines: [{ kind: 'engine-sim', version: ENGINE_VERSION }, { kind: 'vllm', version: ENGINE_VERSION }],
    agentVersion,
    failureDomain: machine.domain,
    taints: [...machine.taints],
    market,
    price: dollars === null ? null : { dollarsPerGpuHour: dollars, source: `catalogue of GPU types, ${gpu.price.status}` },
  };
}

function acceleratorOf({ nodeId, gpu, shape, geometry }: MachineSpec, index: number, layout: MigLayout | null): Accelerator {
  const acceleratorId = `${nodeId}-gpu-${index}`;
  const island = shape.islands.findIndex((members) => members.includes(index));
  return {
    acceleratorId,
    type: acceleratorTypeOf(gpu.type),
    memoryBytes: gpu.memoryMib * MEBIBYTE,
    usableBytes: gpu.usableMib * MEBIBYTE,
    computeMilli: WHOLE_COMPUTE_MILLI,
    device: `GPU-${acceleratorId}`,
    islandId: (shape.islands[island]?.length ?? 1) > 1 ? `${nodeId}-island-${island}` : null,
    mig: geometry === undefined ? null : { isEnabled: layout !== null, instances: (layout ?? []).map((instance) => ({ ...instance, uuid: uuidOf(acceleratorId, instance) })) },
  };
}
