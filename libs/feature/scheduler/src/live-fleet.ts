import type { CatalogState } from '@penstock/domain-catalog';
import { isLiving, type FleetState } from '@penstock/domain-lifecycle';
import { gpuTypeLike, gpuTypeNamed, MIB, NO_RULES, RunningFleet, type FleetHardware, type FleetNode, type GpuType, type Holding, type StandingReplica } from '@penstock/domain-placement';
import { nodesUp } from './build-placement-input.js';

/** The fleet as questions about what would be see it: GPUs by the names of the catalogue, and everything where it stands. */
export interface LiveFleet {
  /** Nodes that are up; a machine with several kinds of accelerators is several of these. */
  readonly nodes: readonly FleetNode[];
  readonly replicas: readonly StandingReplica[];
  /** The machine that a planned node belongs to. */
  readonly nodeIdOf: (plannedNodeId: string) => string;
  /** The planned nodes that a machine is seen as. */
  readonly plannedIdsOf: (nodeId: string) => readonly string[];
  /** What the machine itself calls its accelerators, which is what endpoints name. */
  readonly reportedTypeOf: (plannedNodeId: string) => string;
}

/** Nodes that are up, with what stands on them and what was decided for them. Pure. */
export function liveFleet(fleet: FleetState, catalog: CatalogState, nowMs: number): LiveFleet {
  const running = new RunningFleet(nodesUp({ fleet, nowMs }), []);
  const { state } = running;
  const nodes = state.nodes.map((node, number): FleetNode => {
    const [first] = running.numbersOf.get(node.nodeId) ?? [];
    return { ...node, nodeId: first === number ? node.nodeId : `${node.nodeId}/${number}`, gpuType: gpuTypeLike(node.gpuType, node.vramMib * MIB)?.type ?? node.gpuType };
  });
  const numbers = new Map(nodes.map(({ nodeId }, number) => [nodeId, number]));
  const plannedIdsOf = (nodeId: string): readonly string[] => (running.numbersOf.get(nodeId) ?? []).flatMap((number) => nodes[number]?.nodeId ?? []);
  const living = [...fleet.replicas.values()].filter(({ phase }) => isLiving(phase));
  const replicas = [...living, ...fleet.ledger.pending.values()].flatMap((replica): StandingReplica[] => {
    const found = running.seatOf(replica satisfies Holding);
    if (found === undefined) return [];
    const { rules } = catalog.endpoints.get(replica.endpointId) ?? { rules: null };
    const { allowsSpot, pinnedNodeIds, tolerations } = rules ?? NO_RULES;
    return [{
      replicaId: replica.replicaId, endpointId: replica.endpointId, part: found.part, precision: replica.option.precision ?? 'as registered', start: found.seat.start,
      members: found.seat.nodes.map((node) => ({ nodeId: nodes[node]?.nodeId ?? '', gpus: found.seat.gpus.filter((gpu) => state.nodeOf[gpu] === node).map((gpu) => gpu - (state.firstGpu[node] as number)) })),
      demand: { allowsSpot, pinnedNodeIds: pinnedNodeIds?.flatMap(plannedIdsOf) ?? null, tolerations },
    }];
  });
  return {
    nodes, replicas, plannedIdsOf,
    nodeIdOf: (plannedNodeId) => running.owners[numbers.get(plannedNodeId) ?? -1]?.nodeId ?? plannedNodeId,
    reportedTypeOf: (plannedNodeId) => state.nodes[numbers.get(plannedNodeId) ?? -1]?.gpuType ?? '',
  };
}

/** The name that the catalogue has for a type, and the type itself where the catalogue has none. */
export function gpuNameOf(type: string): string {
  return gpuTypeNamed(type)?.type ?? type;
}

/** Kinds of hardware in a fleet, for profiles: each with the sizes of groups that one of its islands holds. */
export function hardwareOf(nodes: readonly FleetNode[], sizes?: readonly number[]): readonly FleetHardware[] {
  const kinds = Map.groupBy(nodes, (node) => `${node.gpuType} ${node.sharing}`);
  return [...kinds.values()].map((alike): FleetHardware => {
    const first = alike[0] as FleetNode;
    const largest = Math.max(0, ...alike.flatMap(({ islands }) => islands.map((island) => island.length)));
    return { gpu: gpuOf(first, Math.min(...alike.map(({ vramMib }) => vramMib))), sharing: first.sharing, tensorParallel: (sizes ?? [1, 2, 4, 8]).filter((size) => size <= largest), gangPerNode: 0 };
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
