import { canAdd, profileOf, type MigGeometry, type MigInstance, type MigLayout } from './mig-geometry.js';

/** How many instances of each profile, in the order of the names that were asked for. */
export type MigMultiset = readonly number[];

/** Every way to place instances of the named profiles, each once, from none to full. At most a few thousand. */
export function placedLayouts(geometry: MigGeometry, names: readonly string[]): readonly MigLayout[] {
  const found: MigLayout[] = [];
  const extend = (layout: MigLayout, from: number): void => {
    found.push(layout);
    for (let slice = from; slice < geometry.memorySlices; slice += 1) {
      for (const name of names) {
        const profile = profileOf(geometry, name);
        if (profile === undefined || !profile.starts.includes(slice)) continue;
        const instance = { profile: name, start: slice };
        if (canAdd(geometry, layout, instance)) extend([...layout, instance], slice + profile.memorySlices);
      }
    }
  };
  extend([], 0);
  return found;
}

/** The layouts to which no instance of the named profiles can be added. */
export function maximalLayouts(geometry: MigGeometry, names: readonly string[]): readonly MigLayout[] {
  return placedLayouts(geometry, names).filter((layout) => !names.some((name) => startsFor(geometry, layout, name).length > 0));
}

/** What one GPU can hold at once: multisets that are not part of a larger one, largest profiles first in order. */
export function maximalMultisets(geometry: MigGeometry, names: readonly string[]): readonly MigMultiset[] {
  const all = new Map<string, MigMultiset>();
  for (const layout of placedLayouts(geometry, names)) {
    const counts = names.map((name) => layout.filter((instance) => instance.profile === name).length);
    all.set(counts.join(','), counts);
  }
  const multisets = [...all.values()];
  return multisets.filter((one) => !multisets.some((other) => other !== one && other.every((count, index) => count >= (one[index] as number))));
}

/** How many different multisets are legal, the empty one not counted. */
export function legalMultisetCount(geometry: MigGeometry, names: readonly string[]): number {
  return new Set(placedLayouts(geometry, names).map((layout) => names.map((name) => layout.filter((instance) => instance.profile === name).length).join(','))).size - 1;
}

/** Where an instance of the profile could begin now. */
export function startsFor(geometry: MigGeometry, layout: MigLayout, name: string): readonly number[] {
  return (profileOf(geometry, name)?.starts ?? []).filter((start) => canAdd(geometry, layout, { profile: name, start }));
}

/**
 * The place for one more instance that keeps the most possible: the sum over all profiles of the compute that could
 * still be added is largest, and among equals the highest start. Small instances therefore go to slices 6, 5, 4 first,
 * and a 4g stays possible as long as it can.
 */
export function bestStart(geometry: MigGeometry, layout: MigLayout, name: string): MigInstance | undefined {
  let best: MigInstance | undefined;
  let bestWorth = -1;
  for (const start of startsFor(geometry, layout, name)) {
    const instance = { profile: name, start };
    const worth = roomLeft(geometry, [...layout, instance]);
    if (worth >= bestWorth) {
      best = instance;
      bestWorth = worth;
    }
  }
  return best;
}

/** A larger profile that still fits is worth more than the same slices in small ones. */
function roomLeft(geometry: MigGeometry, layout: MigLayout): number {
  return geometry.profiles.reduce((sum, profile) => sum + startsFor(geometry, layout, profile.name).length * profile.computeSlices ** 2, 0);
}

/** Puts a multiset on one GPU, largest first; undefined when it does not fit in any way. */
export function layOut(geometry: MigGeometry, names: readonly string[]): MigLayout | undefined {
  const sorted = [...names].sort((one, other) => (profileOf(geometry, other)?.memorySlices ?? 0) - (profileOf(geometry, one)?.memorySlices ?? 0) || (profileOf(geometry, other)?.computeSlices ?? 0) - (profileOf(geometry, one)?.computeSlices ?? 0));
  const extend = (layout: MigLayout, index: number): MigLayout | undefined => {
    const name = sorted[index];
    if (name === undefined) return layout;
    for (const start of startsFor(geometry, layout, name)) {
      const done = extend([...layout, { profile: name, start }], index + 1);
      if (done !== undefined) return done;
    }
    return undefined;
  };
  return extend([], 0);
}
