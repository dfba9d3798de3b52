/** A device that can hold a replica. */
export interface DetectedAccelerator {
  /** `cpu`, or a GPU type such as `h100`. */
  readonly type: string;
  readonly memoryBytes: number;
  /** Index or UUID as engines are told; null for the CPU. */
  readonly device: string | null;
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
