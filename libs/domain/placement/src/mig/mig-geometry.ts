/** Where a figure of a profile comes from. */
export type MigFigureSource = 'nvidia-smi' | 'third_party' | 'mock' | 'estimate';

/**
 * A kind of GPU instance: an interval of memory slices that may begin at some places only. Instances are never counted
 * without their places: two free slices in the wrong spot take no 2g.
 */
export interface MigProfile {
  /** As the driver names it: `3g.40gb`. */
  readonly name: string;
  /** The driver's number for the profile, as `nvidia-smi mig -lgip` shows it. */
  readonly giProfileId: number;
  readonly computeSlices: number;
  /** Length of the interval, in memory slices. */
  readonly memorySlices: number;
  /** Memory that the instance reports, in MiB, before the engine's own overhead. */
  readonly usableMib: number;
  readonly memoryFrom: MigFigureSource;
  readonly multiprocessors: number;
  /** Memory slices at which the interval may begin. */
  readonly starts: readonly number[];
  readonly maxInstances: number;
  /** At most one instance with media extensions fits a GPU. */
  readonly hasMediaExtensions: boolean;
}

export interface MigGeometry {
  readonly gpuType: string;
  /** Length of the axis. */
  readonly memorySlices: number;
  readonly computeSlices: number;
  readonly startsFrom: 'verified' | 'assumed' | 'emulator';
  readonly profiles: readonly MigProfile[];
  readonly sources: readonly string[];
}

/** One GPU instance: a profile at a place. */
export interface MigInstance {
  readonly profile: string;
  readonly start: number;
}

export type MigLayout = readonly MigInstance[];

export function profileOf(geometry: MigGeometry, name: string): MigProfile | undefined {
  return geometry.profiles.find((profile) => profile.name === name);
}

/** What is wrong with a layout, in words; empty when a driver would accept it. */
export function layoutProblems(geometry: MigGeometry, layout: MigLayout): readonly string[] {
  const problems: string[] = [];
  const owner = new Array<string | undefined>(geometry.memorySlices).fill(undefined);
  const counts = new Map<string, number>();
  let compute = 0;
  for (const { profile: name, start } of layout) {
    const profile = profileOf(geometry, name);
    if (profile === undefined) {
      problems.push(`${geometry.gpuType} has no profile ${name}; it has ${geometry.profiles.map((one) => one.name).join(', ')}`);
      continue;
    }
    if (!profile.starts.includes(start)) problems.push(`${name} cannot begin at slice ${start}, only at ${profile.starts.join(', ')}`);
    for (let slice = start; slice < start + profile.memorySlices; slice += 1) {
      if (owner[slice] !== undefined) problems.push(`slice ${slice} is taken twice, by ${owner[slice]} and ${name}`);
      owner[slice] = name;
    }
    counts.set(name, (counts.get(name) ?? 0) + 1);
    compute += profile.computeSlices;
  }
  for (const [name, count] of counts) {
    const most = profileOf(geometry, name)?.maxInstances ?? 0;
    if (count > most) problems.push(`${count} instances of ${name}, at most ${most} are possible`);
  }
  if (layout.filter(({ profile }) => profileOf(geometry, profile)?.hasMediaExtensions === true).length > 1) problems.push('more than one instance has media extensions');
  if (compute > geometry.computeSlices) problems.push(`${compute} compute slices wanted, the GPU has ${geometry.computeSlices}`);
  return problems;
}

/** Whether the instance can be made beside those that are there. */
export function canAdd(geometry: MigGeometry, layout: MigLayout, instance: MigInstance): boolean {
  return layoutProblems(geometry, [...layout, instance]).length === 0;
}
