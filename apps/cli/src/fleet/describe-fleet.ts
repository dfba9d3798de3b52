import type { EndpointView, NodeView, ReplicaView } from '@penstock/contract-commands';
import { migGeometryLike } from '@penstock/domain-placement';

export interface Held {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly endpointName: string;
  readonly phase: ReplicaView['phase'];
  /** This device's part of what the replica has set aside. */
  readonly bytes: number;
}

export interface DescribedDevice {
  readonly acceleratorId: string;
  /** As in `h100`, `h100-mig-1g.10gb` or `cpu`. */
  readonly type: string;
  readonly memoryBytes: number;
  readonly usedBytes: number;
  readonly held: readonly Held[];
  /** How it is split; null where it is not. */
  readonly mig: DescribedMig | null;
}

export interface DescribedMig {
  readonly memorySlices: number;
  /** By start; a replica whose instance is still to be made counts as its holder. */
  readonly instances: readonly { readonly profile: string; readonly start: number; readonly memorySlices: number; readonly held: Held | null }[];
}

export interface DescribedNode {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: NodeView['status'];
  readonly statusReason: string | null;
  /** Why it takes nothing new, becomes empty, or is taken back; null while it is open. */
  readonly closedBecause: string | null;
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly engines: readonly string[];
  readonly devices: readonly DescribedDevice[];
  /** Replicas whose devices the node does not offer any more, such as those on a cordoned node. */
  readonly withoutDevice: readonly Held[];
}

export interface DescribedFleet {
  readonly nodes: readonly DescribedNode[];
  readonly totals: { readonly nodesUp: number; readonly devices: number; readonly devicesHeld: number; readonly memoryBytes: number; readonly usedBytes: number };
}

type Fleet = { readonly nodes: readonly NodeView[]; readonly replicas: readonly ReplicaView[] };

/** Who holds how much of which device. Memory of a replica is spread evenly over its devices, as the scheduler counts it. */
export function describeFleet(fleet: Fleet, endpoints: readonly EndpointView[]): DescribedFleet {
  const names = new Map(endpoints.map((endpoint) => [endpoint.endpointId, endpoint.name]));
  const nodes = fleet.nodes.map((node) => describeNode(node, fleet.replicas.filter((replica) => replica.members.some((member) => member.nodeId === node.nodeId)), names));
  const up = nodes.filter((node) => node.status === 'up');
  const devices = up.flatMap((node) => node.devices);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return {
    nodes,
    totals: {
      nodesUp: up.length, devices: devices.length, devicesHeld: devices.filter((device) => device.held.length > 0).length,
      memoryBytes: sum(devices.map((device) => device.memoryBytes)), usedBytes: sum(devices.map((device) => device.usedBytes)),
    },
  };
}

function describeNode(node: NodeView, replicas: readonly ReplicaView[], names: ReadonlyMap<string, string>): DescribedNode {
  const living = replicas.filter((replica) => replica.phase !== 'stopped' && replica.phase !== 'failed');
  const hold = (replica: ReplicaView): Held => ({
    replicaId: replica.replicaId, endpointId: replica.endpointId, endpointName: names.get(replica.endpointId) ?? replica.endpointId, phase: replica.phase,
    bytes: Math.ceil(replica.reservedBytes / Math.max(1, replica.members.reduce((sum, member) => sum + member.acceleratorIds.length, 0))),
  });
  const acceleratorsOf = (replica: ReplicaView): readonly string[] => replica.members.find((member) => member.nodeId === node.nodeId)?.acceleratorIds ?? [];
  const offered = new Set(node.accelerators.map((accelerator) => accelerator.acceleratorId));
  return {
    nodeId: node.nodeId, hostname: node.hostname, status: node.status, statusReason: node.statusReason, closedBecause: closedBecause(node), cpuCores: node.cpuCores, memoryBytes: node.memoryBytes,
    engines: node.engines.map((engine) => engine.kind),
    devices: node.accelerators.map((accelerator) => {
      const { acceleratorId, type, memoryBytes } = accelerator;
      const holders = living.filter((replica) => acceleratorsOf(replica).includes(acceleratorId));
      const held = holders.map(hold);
      return { acceleratorId, type, memoryBytes, usedBytes: held.reduce((total, { bytes }) => total + bytes, 0), held, mig: describeMig(accelerator, holders, hold) };
    }),
    withoutDevice: living.filter((replica) => !acceleratorsOf(replica).some((acceleratorId) => offered.has(acceleratorId))).map(hold),
  };
}

function closedBecause(node: NodeView): string | null {
  if (node.drainReason !== null) return `drains: ${node.drainReason}`;
  if (node.cordonReason !== null) return `cordoned: ${node.cordonReason}`;
  return node.reclaimAt === null ? null : `taken back at ${node.reclaimAt}`;
}

function describeMig({ type, usableBytes, mig }: NodeView['accelerators'][number], holders: readonly ReplicaView[], hold: (replica: ReplicaView) => Held): DescribedMig | null {
  const geometry = mig?.isEnabled === true ? migGeometryLike(type, usableBytes) : undefined;
  if (mig === null || geometry === undefined) return null;
  const places = new Map([...mig.instances, ...holders.flatMap((replica) => replica.mig ?? [])].map(({ profile, start }) => [`${profile}@${start}`, { profile, start }]));
  const instances = [...places.values()].sort((one, other) => one.start - other.start).map(({ profile, start }) => {
    const holder = holders.find((replica) => replica.mig?.profile === profile && replica.mig.start === start);
    return { profile, start, memorySlices: geometry.profiles.find((one) => one.name === profile)?.memorySlices ?? 1, held: holder === undefined ? null : hold(holder) };
  });
  return { memorySlices: geometry.memorySlices, instances };
}
