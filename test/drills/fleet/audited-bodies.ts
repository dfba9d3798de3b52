/** The parts of event bodies that the audit reads, as they stand in the log. It uses no code of the scheduler's. */
export interface AcceleratorBody {
  readonly acceleratorId: string;
  readonly type: string;
  readonly usableBytes: number;
  readonly computeMilli: number;
  readonly islandId: string | null;
  readonly mig: { readonly isEnabled: boolean; readonly instances: readonly InstanceBody[] } | null;
}

export interface InstanceBody {
  readonly profile: string;
  readonly start: number;
}

export interface NodeBody {
  readonly nodeId: string;
  readonly accelerators: readonly AcceleratorBody[];
  readonly engines: readonly { readonly kind: string }[];
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly failureDomain: string;
  readonly market: string;
  readonly taints: readonly string[];
}

export interface PlacementBody {
  readonly replicaId: string;
  readonly endpointId: string;
  readonly members: readonly { readonly nodeId: string; readonly acceleratorIds: readonly string[] }[];
  readonly reservedBytes: number;
  readonly computeMilli: number;
  readonly cpuMilli: number;
  readonly hostMemoryBytes: number;
  readonly mig: InstanceBody | null;
  readonly replaces: string | null;
}

export interface RefusalBody {
  readonly endpointId: string;
  readonly wantedReplicas: number;
  readonly code: string;
  readonly reason: string;
}

export interface ReservationBody {
  readonly reservationId: string;
  readonly level: { readonly endpointId: string };
  readonly capacity: { readonly parts: readonly { readonly count: number }[] };
}
