import type { CatalogState } from '@penstock/domain-catalog';
import { isLiving, type FleetState, type NodeState, type ReplicaMember, type ReplicaState } from '@penstock/domain-lifecycle';
import { gpuTypeNamed, MIG_GEOMETRIES, type FleetHardware, type FleetNode, type FleetPart, type GpuType, type StandingReplica } from '@penstock/domain-placement';

const MIB = 1_048_576;

/** Accelerators of one node that are alike: of one type, used in one way. The planner sees each group as a node. */
interface NodeGroup {
  readonly ownerId: string;
  readonly node: FleetNode;
  readonly acceleratorIds: readonly string[];
}

/** The fleet as the planner sees it. */
export interface LiveFleet {
  readonly nodes: readonly FleetNode[];
  readonly replicas: readonly StandingReplica[];
  /** The node of the fleet that one of the planner's belongs to. */
  readonly nodeIdOf: (plannedNodeId: string) => string;
  /** The planner's nodes that one of the fleet is seen as. */
  readonly plannedIdsOf: (nodeId: string) => readonly string[];
}

/** Nodes that are up, with what stands on them and what was decided for them. Pure. */
export function liveFleet(fleet: FleetState, catalog: CatalogState): LiveFleet {
  const groups = [...fleet.nodes.values()].filter(({ status }) => status === 'up').flatMap(groupsOf);
  const groupOf = new Map(groups.flatMap((group) => group.acceleratorIds.map((acceleratorId) => [acceleratorId, group] as const)));
  const living = [...fleet.replicas.values()].filter(({ phase }) => isLiving(phase));
  const pending = [...fleet.ledger.pending.values()];
  const owned = Map.groupBy(groups, ({ ownerId }) => ownerId);
  const plannedIdsOf = (nodeId: string): readonly string[] => owned.get(nodeId)?.map(({ node }) => node.nodeId) ?? [];
  const replicas = [...living, ...pending].flatMap((replica) => standing(replica, groupOf, catalog, plannedIdsOf) ?? []);
  const owners = new Map(groups.map(({ node, ownerId }) => [node.nodeId, ownerId]));
  return { nodes: groups.map(({ node }) => node), replicas, nodeIdOf: (plannedNodeId) => owners.get(plannedNodeId) ?? plannedNodeId, plannedIdsOf };
}

function groupsOf(node: NodeState): readonly NodeGroup[] {
  const byKind = Map.groupBy(node.accelerators, (accelerator) => `${accelerator.type} ${accelerator.usableBytes} ${sharingOf(accelerator)}`);
  return [...byKind.values()].map((accelerators, index) => {
    const [first] = accelerators;
    const type = first === undefined ? 'cpu' : gpuNameOf(first.type);
    const islands = Map.groupBy(accelerators.map((accelerator, at) => ({ accelerator, at })), ({ accelerator, at }) => accelerator.islandId ?? `alone-${at}`);
    return {
      ownerId: node.nodeId, acceleratorIds: accelerators.map(({ acceleratorId }) => acceleratorId),
      node: {
        nodeId: index === 0 ? node.nodeId : `${node.nodeId}/${index}`, gpuType: type, gpus: accelerators.length, islands: [...islands.values()].map((island) => island.map(({ at }) => at)),
        vramMib: (first?.usableBytes ?? 0) / MIB, cpuMilli: node.cpuCores * 1_000, hostMemoryMib: node.memoryBytes / MIB, failureDomain: node.failureDomain, sharing: first === undefined ? 'shares' : sharingOf(first),
        market: node.market, pricePerGpu: priceOf(node, type), taints: node.taints, isCordoned: node.cordonReason !== null || node.drainReason !== null || node.reclaimAt !== null,
      },
    };
  });
}

type Accelerator = NodeState['accelerators'][number];

function sharingOf({ mig, type }: Accelerator): FleetNode['sharing'] {
  const geometry = gpuTypeNamed(type)?.migGeometry ?? null;
  return mig?.isEnabled === true && MIG_GEOMETRIES.some(({ gpuType }) => gpuType === geometry) ? 'mig' : 'shares';
}

/** The name that the catalogue has for a type, and the type itself where the catalogue has none. */
export function gpuNameOf(type: string): string {
  return gpuTypeNamed(type)?.type ?? type;
}

/** What the node says it costs; else what its type typically costs. Processors of our own cost nothing more. */
function priceOf({ price, market }: NodeState, type: string): number {
  if (price !== null) return price.dollarsPerGpuHour;
  const known = gpuTypeNamed(type)?.price;
  return (market === 'spot' ? known?.spot : null) ?? known?.onDemand ?? 0;
}

type Placed = Pick<ReplicaState, 'replicaId' | 'endpointId' | 'reservedBytes' | 'computeMilli' | 'cpuMilli' | 'hostMemoryBytes' | 'mig' | 'option'> & { readonly members: readonly ReplicaMember[] };

/** Undefined for a replica that stands on a node which is gone, or on no accelerator at all. */
function standing(replica: Placed, groupOf: ReadonlyMap<string, NodeGroup>, catalog: CatalogState, plannedIdsOf: LiveFleet['plannedIdsOf']): StandingReplica | undefined {
  const members = replica.members.map(({ acceleratorIds }) => {
    const group = groupOf.get(acceleratorIds[0] ?? '');
    return group === undefined ? undefined : { nodeId: group.node.nodeId, gpus: acceleratorIds.map((acceleratorId) => group.acceleratorIds.indexOf(acceleratorId)) };
  });
  if (members.some((member) => member === undefined || member.gpus.includes(-1))) return undefined;
  const rules = catalog.endpoints.get(replica.endpointId)?.rules ?? null;
  return {
    replicaId: replica.replicaId, endpointId: replica.endpointId, part: partOf(replica), precision: replica.option.precision ?? 'as registered', members: members.filter((member) => member !== undefined), start: replica.mig?.start ?? null,
    demand: { allowsSpot: rules?.allowsSpot ?? true, pinnedNodeIds: rules?.pinnedNodeIds?.flatMap(plannedIdsOf) ?? null, tolerations: rules?.tolerations ?? [] },
  };
}

function partOf({ members, reservedBytes, computeMilli, cpuMilli, hostMemoryBytes, mig }: Placed): FleetPart {
  const accelerators = members.reduce((sum, { acceleratorIds }) => sum + acceleratorIds.length, 0);
  return {
    accelerators, nodes: members.length, computeMilli, vramMib: mig === null ? reservedBytes / Math.max(1, accelerators) / MIB : 0, migProfile: mig?.profile ?? null,
    cpuMilli: cpuMilli * members.length, hostMemoryMib: (hostMemoryBytes * members.length) / MIB,
  };
}

/** Kinds of hardware in a fleet, for profiles: each with the sizes of groups that one of its islands holds. */
export function hardwareOf(nodes: readonly FleetNode[], sizes?: readonly number[]): readonly FleetHardware[] {
  const kinds = Map.groupBy(nodes, (node) => `${node.gpuType} ${node.sharing}`);
  return [...kinds.values()].map((alike): FleetHardware => {
    const [first] = alike;
    const largest = Math.max(0, ...alike.flatMap(({ islands }) => islands.map((island) => island.length)));
    return { gpu: gpuOf(first as FleetNode, Math.min(...alike.map(({ vramMib }) => vramMib))), sharing: (first as FleetNode).sharing, tensorParallel: (sizes ?? [1, 2, 4, 8]).filter((size) => size <= largest), gangPerNode: 0 };
  });
}

/**
 * A type with the memory that nodes report of it: drivers keep more or less for themselves. One that the catalogue does not have
 * gives no estimate, only what was measured on it.
 */
function gpuOf({ gpuType, pricePerGpu }: FleetNode, usableMib: number): GpuType {
  const known = gpuTypeNamed(gpuType);
  if (known !== undefined) return { ...known, usableMib: Math.floor(usableMib), usableFrom: 'the nodes' };
  return {
    type: gpuType, memoryMib: usableMib, usableMib, usableFrom: 'the nodes', bandwidthGbPerS: 0, denseTflops: { bf16: 0, fp8: null, int8: null, fp4: null }, nvlinkGbPerS: 0, pcieGbPerS: 0, migGeometry: null,
    price: { onDemand: pricePerGpu, spot: null, status: 'told', sources: ['the nodes'] }, source: 'the nodes',
  };
}
