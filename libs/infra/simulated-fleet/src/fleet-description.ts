import type { NodeJoinedV1 } from '@penstock/contract-events';
import { gpuTypeOf, layoutProblems, MIG_GEOMETRIES, NODE_SHAPES, nodeShapeOf, profileOf, type GpuType, type MigGeometry, type MigLayout, type NodeShape } from '@penstock/domain-placement';
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
  market: z.enum(['on-demand', 'spot']).default('on-demand'),
  /** This many nodes in a row share a rack, and fail with it. */
  nodesPerDomain: z.int().min(1).max(1_000).default(4),
  /** The MIG layout of each GPU at the start; left out, GPUs are whole. */
  mig: z.array(migInstance).max(8).default([]),
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
  readonly market: 'on-demand' | 'spot';
  readonly shape: NodeShape;
  readonly gpu: GpuType;
  /** Undefined for a GPU that cannot be partitioned. */
  readonly geometry: MigGeometry | undefined;
  readonly layout: MigLayout;
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
        market: group.market, shape, gpu, geometry, layout: group.mig,
        networkBps: group.networkGBps * GIGABYTE, storageBps: group.storageGBps * GIGABYTE, cacheBytes: group.cacheGB * GIGABYTE,
      });
    }
  }
  return machines;
}

function checkLayout(index: number, gpu: GpuType, geometry: MigGeometry | undefined, layout: MigLayout): void {
  if (layout.length === 0) return;
  if (geometry === undefined) throw new FleetDescriptionError(`nodes.${index}.mig: ${gpu.type} cannot be partitioned; leave mig out.`);
  const [problem] = layoutProblems(geometry, layout);
  if (problem !== undefined) throw new FleetDescriptionError(`nodes.${index}.mig: ${problem}.`);
}

export type Accelerator = NodeJoinedV1['accelerators'][number];

/** What a GPU offers: itself, or its MIG instances, each an accelerator of its own with the memory that it really reports. */
export function acceleratorsOf({ nodeId, gpu, geometry }: MachineSpec, gpuIndex: number, layout: MigLayout): readonly Accelerator[] {
  const type = acceleratorTypeOf(gpu.type);
  const gpuId = `${nodeId}-gpu-${gpuIndex}`;
  if (layout.length === 0 || geometry === undefined) return [{ acceleratorId: gpuId, type, memoryBytes: gpu.usableMib * MEBIBYTE, device: `sim:${gpuId}` }];
  return layout.map(({ profile, start }) => {
    const acceleratorId = `${gpuId}-${profile.replaceAll('.', '-').replace('+', '-')}-${start}`;
    return { acceleratorId, type: `${type}-mig-${profile}`, memoryBytes: (profileOf(geometry, profile)?.usableMib ?? 0) * MEBIBYTE, device: `sim:MIG-${acceleratorId}` };
  });
}

/** What the node says of itself. */
export function reportOf(machine: MachineSpec, layouts: readonly MigLayout[], agentVersion: string): NodeJoinedV1 {
  return {
    nodeId: machine.nodeId,
    hostname: machine.hostname,
    accelerators: layouts.flatMap((layout, gpuIndex) => acceleratorsOf(machine, gpuIndex, layout)),
    cpuCores: machine.shape.cpuMilli / 1_000,
    memoryBytes: machine.shape.hostMemoryMib * MEBIBYTE,
    engines: [{ kind: 'engine-sim', version: ENGINE_VERSION }, { kind: 'vllm', version: ENGINE_VERSION }],
    agentVersion,
  };
}
