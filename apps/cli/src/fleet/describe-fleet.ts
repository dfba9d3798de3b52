import type { EndpointView, NodeView, ReplicaView } from '@penstock/contract-commands';

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
}

export interface DescribedNode {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: NodeView['status'];
  readonly statusReason: string | null;
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
  const nodes = fleet.nodes.map((node) => describeNode(node, fleet.replicas.filter((replica) => replica.nodeId === node.nodeId), names));
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
    bytes: Math.ceil(replica.reservedBytes / Math.max(1, replica.acceleratorIds.length)),
  });
  const offered = new Set(node.accelerators.map((accelerator) => accelerator.acceleratorId));
  return {
    nodeId: node.nodeId, hostname: node.hostname, status: node.status, statusReason: node.statusReason, cpuCores: node.cpuCores, memoryBytes: node.memoryBytes,
    engines: node.engines.map((engine) => engine.kind),
    devices: node.accelerators.map(({ acceleratorId, type, memoryBytes }) => {
      const held = living.filter((replica) => replica.acceleratorIds.includes(acceleratorId)).map(hold);
      return { acceleratorId, type, memoryBytes, usedBytes: held.reduce((total, { bytes }) => total + bytes, 0), held };
    }),
    withoutDevice: living.filter((replica) => !replica.acceleratorIds.some((acceleratorId) => offered.has(acceleratorId))).map(hold),
  };
}
