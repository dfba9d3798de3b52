import type { DetectedMigInstance } from './engine-hardware.js';

/** Where a MIG instance is, or is to be. */
export interface MigPlace {
  readonly profile: string;
  /** The memory slice where it begins. */
  readonly start: number;
}

/**
 * Changes the MIG instances of the GPUs of this machine. Each call is one step that the driver takes whole or not at all; whoever
 * calls it lists the instances first, so that a step may be asked for again after a crash.
 */
export interface MigDriver {
  /** The instances of a GPU, by its UUID. Rejects when the tool does not answer. */
  list(device: string): Promise<readonly DetectedMigInstance[]>;
  /** Makes an instance with one compute instance over all of it. Rejects with the tool's own words, as when something else is there. */
  create(device: string, place: MigPlace): Promise<void>;
  /** Takes an instance away. Rejects when it is in use. */
  destroy(device: string, place: MigPlace): Promise<void>;
}
