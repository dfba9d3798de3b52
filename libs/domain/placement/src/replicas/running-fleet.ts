import { WHOLE_ACCELERATOR_MILLI } from '../arrivals/arrival-demand.js';
import { gpuTypeLike } from '../catalogue/gpu-types.js';
import { FleetState } from '../fleet/fleet-state.js';
import type { FleetNode, FleetPart, FleetSeat, FleetSharing } from '../fleet/fleet-types.js';
import { migGeometryLike } from '../mig/mig-geometries.js';
import { compareText } from './compare-text.js';
import type { HeldMember, Holding, PlacementAccelerator, PlacementNode } from './placement-input.js';

/** Dividing by a power of two loses nothing, so that what fits to the byte fits here. */
export const MIB = 1_048_576;

/** A node without a word on its memory is not short of it. */
const UNLIMITED_MIB = Number.MAX_SAFE_INTEGER;

/**
 * The machines that are up, and who holds what of them, on the one ledger of GPUs that plans and benchmarks share. A machine
 * with several kinds of accelerators is several nodes of the ledger on one host.
 */
export class RunningFleet {
  readonly state: FleetState;
  /** By number of the ledger's node. */
  readonly owners: readonly PlacementNode[];
  /** Numbers of the ledger's nodes, by id. */
  readonly numbersOf: ReadonlyMap<string, readonly number[]>;
  private readonly accelerators: readonly PlacementAccelerator[];
  private readonly gpuOf = new Map<string, number>();
  /** How many failure domains there are. */
  readonly domains: number;

  constructor(nodes: readonly PlacementNode[], holdings: readonly Holding[]) {
    const parts = [...nodes].sort((one, other) => compareText(one.nodeId, other.nodeId)).flatMap((owner) => kindsOf(owner));
    this.state = new FleetState(parts.map((part) => part.node));
    this.owners = parts.map((part) => part.owner);
    this.accelerators = parts.flatMap((part) => part.accelerators);
    this.domains = new Set(nodes.map((node) => node.failureDomain)).size;
    const numbers = new Map<string, number[]>();
    for (const [index, { owner }] of parts.entries()) numbers.set(owner.nodeId, [...(numbers.get(owner.nodeId) ?? []), index]);
    this.numbersOf = numbers;
    for (const [gpu, accelerator] of this.accelerators.entries()) this.gpuOf.set(keyOf(this.ownerOf(gpu).nodeId, accelerator.acceleratorId), gpu);
    for (const holding of holdings) this.hold(holding);
  }

  acceleratorOf(gpu: number): PlacementAccelerator {
    return this.accelerators[gpu] as PlacementAccelerator;
  }

  ownerOf(gpu: number): PlacementNode {
    return this.owners[this.state.nodeOf[gpu] as number] as PlacementNode;
  }

  gpuNumber(nodeId: string, acceleratorId: string): number | undefined {
    return this.gpuOf.get(keyOf(nodeId, acceleratorId));
  }

  /** Where idle instances of a profile exist on the GPU already. */
  readonly idleStarts = (gpu: number, profile: string): readonly number[] =>
    (this.acceleratorOf(gpu).migInstances ?? []).filter((instance) => instance.profile === profile).map((instance) => instance.start);

  /** The seat in the words of an event: nodes with the accelerators on each, the first one leading. */
  membersOf(seat: FleetSeat): readonly HeldMember[] {
    return seat.nodes.map((node) => ({
      nodeId: (this.owners[node] as PlacementNode).nodeId,
      acceleratorIds: seat.gpus.filter((gpu) => this.state.nodeOf[gpu] === node).map((gpu) => this.acceleratorOf(gpu).acceleratorId),
    }));
  }

  /** The part of the ledger that a holding takes, and its seat; undefined where none of its accelerators is here. */
  seatOf(holding: Holding): { readonly part: FleetPart; readonly seat: FleetSeat } | undefined {
    const gpus = holding.members.flatMap(({ nodeId, acceleratorIds }) => acceleratorIds.flatMap((acceleratorId) => this.gpuNumber(nodeId, acceleratorId) ?? []));
    if (gpus.length === 0) return undefined;
    const nodes = [...new Set(gpus.map((gpu) => this.state.nodeOf[gpu] as number))];
    const count = holding.members.reduce((sum, member) => sum + member.acceleratorIds.length, 0);
    const isAlone = gpus.some((gpu) => this.acceleratorOf(gpu).isExclusive);
    const hostMemoryMib = holding.hostMemoryBytes / MIB;
    return {
      part: {
        accelerators: gpus.length, nodes: nodes.length, computeMilli: isAlone || count > 1 ? WHOLE_ACCELERATOR_MILLI : holding.computeMilli, vramMib: holding.reservedBytes / count / MIB,
        migProfile: holding.mig?.profile ?? null, cpuMilli: holding.cpuMilli * nodes.length, hostMemoryMib: hostMemoryMib * nodes.length,
      },
      seat: { gpus, nodes, start: holding.mig?.start ?? null },
    };
  }

  private hold(holding: Holding): void {
    const found = this.seatOf(holding);
    if (found === undefined) return;
    const { part, seat } = found;
    const [gpu] = seat.gpus;
    const isInstance = part.migProfile !== null;
    const book = gpu === undefined ? null : this.state.pools[this.state.poolOfGpu(gpu)]?.book;
    const fits = !isInstance || (gpu !== undefined && book !== null && book !== undefined && book.canPlace(this.state.layout[gpu] as number, part.migProfile ?? '', seat.start ?? 0));
    // What contradicts the geometry, as after somebody else repartitioned the GPU, closes it: nothing may be put beside it.
    this.state.take(fits ? part : { ...part, migProfile: null, computeMilli: WHOLE_ACCELERATOR_MILLI, vramMib: 0 }, seat);
  }
}

interface Kind {
  readonly owner: PlacementNode;
  readonly node: FleetNode;
  readonly accelerators: readonly PlacementAccelerator[];
}

/** The accelerators of a machine, by type, memory and way of sharing. One that cannot be used as it is set up is left out. */
function kindsOf(owner: PlacementNode): readonly Kind[] {
  const groups = Map.groupBy(owner.accelerators.filter((accelerator) => sharingOf(accelerator) !== undefined), (accelerator) => [accelerator.type, accelerator.usableBytes, sharingOf(accelerator)].join('|'));
  return [...groups.values()].flatMap((accelerators) => {
    const first = accelerators[0];
    const sharing = first === undefined ? undefined : sharingOf(first);
    return first === undefined || sharing === undefined ? [] : [{ owner, accelerators, node: fleetNode(owner, accelerators, first, sharing) }];
  });
}

function fleetNode(owner: PlacementNode, accelerators: readonly PlacementAccelerator[], first: PlacementAccelerator, sharing: FleetSharing): FleetNode {
  const islands = new Map<string, number[]>();
  for (const [index, { islandId, acceleratorId }] of accelerators.entries()) {
    const name = islandId === null ? `alone:${acceleratorId}` : `island:${islandId}`;
    islands.set(name, [...(islands.get(name) ?? []), index]);
  }
  return {
    nodeId: owner.nodeId,
    host: owner.nodeId,
    gpuType: first.type,
    gpus: accelerators.length,
    islands: [...islands.values()],
    vramMib: first.usableBytes / MIB,
    cpuMilli: owner.cpuMilli,
    hostMemoryMib: owner.hostMemoryBytes === 0 ? UNLIMITED_MIB : owner.hostMemoryBytes / MIB,
    failureDomain: owner.failureDomain,
    sharing,
    migGeometry: sharing === 'mig' ? migGeometryLike(first.type, first.usableBytes)?.gpuType : undefined,
    market: owner.market,
    pricePerGpu: dollarsPerHour(owner, first) ?? 0,
    taints: owner.taints,
    isCordoned: isClosed(owner),
  };
}

function sharingOf(accelerator: PlacementAccelerator): FleetSharing | undefined {
  if (accelerator.isExclusive) return 'whole';
  if (accelerator.migInstances === null) return 'shares';
  return migGeometryLike(accelerator.type, accelerator.usableBytes) === undefined ? undefined : 'mig';
}

/** Dollars of one accelerator and hour: what the node says, else the typical price of its type. null where nobody knows; a CPU costs nothing of its own. */
export function dollarsPerHour(owner: PlacementNode, accelerator: PlacementAccelerator): number | null {
  if (accelerator.type === 'cpu') return 0;
  if (owner.dollarsPerGpuHour !== null) return owner.dollarsPerGpuHour;
  const price = gpuTypeLike(accelerator.type, accelerator.usableBytes)?.price;
  return (owner.market === 'spot' ? (price?.spot ?? price?.onDemand) : price?.onDemand) ?? null;
}

/** True for a node that takes nothing new. */
export function isClosed(node: PlacementNode): boolean {
  return node.cordonReason !== null || node.drainReason !== null || node.reclaimAtMs !== null;
}

function keyOf(nodeId: string, acceleratorId: string): string {
  return `${nodeId}/${acceleratorId}`;
}
