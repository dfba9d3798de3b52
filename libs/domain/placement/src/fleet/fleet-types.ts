/** Whether replicas share a GPU by parts of its time and memory, by MIG instances, or not at all. */
export type FleetSharing = 'shares' | 'mig' | 'whole';

/** A node as the fleet planner sees it. Its GPUs are of one type and used in one way; a machine with several kinds is several of these. */
export interface FleetNode {
  readonly nodeId: string;
  /** The machine whose CPU and memory it shares with others of the same name; its own where left out. */
  readonly host?: string | undefined;
  readonly gpuType: string;
  readonly gpus: number;
  /** Groups of GPUs, by index, that reach each other by NVLink. */
  readonly islands: readonly (readonly number[])[];
  /** Usable memory of each GPU, in MiB. */
  readonly vramMib: number;
  readonly cpuMilli: number;
  readonly hostMemoryMib: number;
  /** What fails together: a rack. */
  readonly failureDomain: string;
  readonly sharing: FleetSharing;
  /** The `gpuType` of its MIG geometry; that of the catalogue's type where left out. */
  readonly migGeometry?: string | undefined;
  readonly market: 'on_demand' | 'spot';
  /** Dollars for each GPU and hour. */
  readonly pricePerGpu: number;
  readonly taints: readonly string[];
  readonly isCordoned: boolean;
}

/** What one replica takes. */
export interface FleetPart {
  readonly accelerators: number;
  /** Nodes that a gang is spread over, evenly; all of them or none. */
  readonly nodes: number;
  /** Of each accelerator, in thousandths. */
  readonly computeMilli: number;
  /** Of each accelerator. */
  readonly vramMib: number;
  /** On a GPU shared by MIG: the instance. null takes whole GPUs. */
  readonly migProfile: string | null;
  readonly cpuMilli: number;
  readonly hostMemoryMib: number;
}

/** One way to serve an endpoint: all its replicas on one kind of hardware. */
export interface FleetOption {
  readonly gpuType: string;
  readonly sharing: FleetSharing;
  readonly precision: string;
  readonly parts: readonly FleetPart[];
}

export interface FleetDemand {
  readonly endpointId: string;
  /** Empty when no hardware can serve it; `hint` then says what would. */
  readonly options: readonly FleetOption[];
  readonly hint: string;
  readonly allowsSpot: boolean;
  /** Only these nodes; null allows any. */
  readonly pinnedNodeIds: readonly string[] | null;
  readonly tolerations: readonly string[];
  /** More of its replicas than this never stand in one failure domain; left out or null, {@link domainLimit} says how many. */
  readonly perDomainMax?: number | null;
}

/** Where a replica sits: GPUs by their number in the fleet, and the first memory slice of its MIG instance. */
export interface FleetSeat {
  readonly gpus: readonly number[];
  readonly nodes: readonly number[];
  readonly start: number | null;
}

export interface SeatedPart {
  readonly part: FleetPart;
  readonly seat: FleetSeat;
}

/** An endpoint that is placed whole. */
export interface FleetAssignment {
  readonly demand: FleetDemand;
  readonly option: FleetOption;
  readonly seats: readonly SeatedPart[];
}

export interface FleetRefusal {
  readonly endpointId: string;
  readonly reason: string;
}

/** No more replicas of one endpoint than this share stand in one failure domain, when it has several. */
export const DOMAIN_SHARE_MAX = 0.5;

/** How many of an endpoint's replicas one failure domain may hold. */
export function domainLimit(replicas: number): number {
  return replicas < 2 ? 1 : Math.ceil(replicas * DOMAIN_SHARE_MAX);
}
