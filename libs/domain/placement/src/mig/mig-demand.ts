import type { MigGeometry } from './mig-geometry.js';
import { profileOf } from './mig-geometry.js';

/** How a model runs on an instance of one profile: measured at one batch size and number of processes. */
export interface MigOption {
  readonly profile: string;
  /** Requests per second of one instance, all its processes together, within the latency objective. */
  readonly rate: number;
  readonly batch: number;
  readonly processes: number;
}

/** A model with its load. At most one option for each profile: the best that keeps the latency objective. */
export interface MigDemand {
  readonly id: string;
  /** Requests per second wanted. */
  readonly rate: number;
  readonly options: readonly MigOption[];
}

/** An instance that serves one model. */
export interface MigAssignment {
  readonly demand: string;
  readonly option: MigOption;
}

/** One row of a measured profile. */
export interface MigMeasurement {
  readonly profile: string;
  readonly batch: number;
  readonly processes: number;
  /** Requests per second of all processes together. */
  readonly rate: number;
  readonly latencyMs: number;
}

/** For each profile the fastest measured setting whose latency stays under the limit; none where no setting does. */
export function bestOptions(measurements: readonly MigMeasurement[], latencyLimitMs: number): readonly MigOption[] {
  const best = new Map<string, MigOption>();
  for (const { profile, batch, processes, rate, latencyMs } of measurements) {
    if (!(rate > 0) || !(latencyMs > 0) || latencyMs >= latencyLimitMs) continue;
    const known = best.get(profile);
    if (known === undefined || rate > known.rate) best.set(profile, { profile, rate, batch, processes });
  }
  return [...best.values()];
}

/** Demands that cannot be met by this GPU type, each with what would help; empty when all can. */
export function migRefusals(geometry: MigGeometry, demands: readonly MigDemand[]): readonly string[] {
  return demands.flatMap((demand) => {
    const unknown = demand.options.filter((option) => profileOf(geometry, option.profile) === undefined);
    if (unknown.length > 0) return [`${demand.id}: ${geometry.gpuType} has no profile ${unknown.map((option) => option.profile).join(', ')}; it has ${geometry.profiles.map((one) => one.name).join(', ')}`];
    if (demand.rate > 0 && demand.options.length === 0) return [`${demand.id}: no profile of ${geometry.gpuType} meets the latency objective: relax it, or give measurements for a whole GPU`];
    return [];
  });
}
