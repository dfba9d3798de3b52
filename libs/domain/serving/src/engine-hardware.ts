/** A device that can hold a replica. */
export interface DetectedAccelerator {
  /** `cpu`, or a GPU type such as `h100`. */
  readonly type: string;
  readonly memoryBytes: number;
  /** Index or UUID as engines are told; null for the CPU. */
  readonly device: string | null;
  /** What engines find of the memory; all of it where left out. */
  readonly usableBytes?: number | undefined;
  /** Accelerators with the same name here reach each other by a fast link; left out or null for one that reaches none. */
  readonly islandId?: string | null | undefined;
  /** Left out or null where it cannot be partitioned. */
  readonly mig?: { readonly isEnabled: boolean; readonly instances: readonly DetectedMigInstance[] } | null | undefined;
}

/** A MIG instance that exists: a profile at the memory slice where it begins, and how engines are told to use it. */
export interface DetectedMigInstance {
  readonly profile: string;
  readonly start: number;
  readonly uuid: string | null;
}

export interface DetectedHardware {
  readonly hostname: string;
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** The CPU first, then GPUs. */
  readonly accelerators: readonly DetectedAccelerator[];
}

/** Finds out what this machine has. */
export interface HardwareProbe {
  detect(): Promise<DetectedHardware>;
}
