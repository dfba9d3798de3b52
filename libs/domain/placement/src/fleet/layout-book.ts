import { canAdd, profileOf, type MigGeometry, type MigLayout, type MigProfile } from '../mig/mig-geometry.js';
import { bestStart, startsFor } from '../mig/mig-layouts.js';

/** A step from one layout to another. */
interface LayoutStep {
  readonly layout: number;
  readonly start: number;
}

/** Layouts of one geometry by number, with what can be added to each; every answer is worked out once. */
export class LayoutBook {
  private readonly layouts: MigLayout[] = [[]];
  private readonly numbers = new Map<string, number>([['', 0]]);
  private readonly steps = new Map<string, LayoutStep | null>();
  private readonly rooms: number[] = [];

  constructor(readonly geometry: MigGeometry) {}

  layoutOf(layout: number): MigLayout {
    return this.layouts[layout] ?? [];
  }

  /** The layout with one more instance at its best place; undefined when none fits. */
  add(layout: number, profile: string): LayoutStep | undefined {
    const key = `${layout}+${profile}`;
    const known = this.steps.get(key);
    if (known !== undefined) return known ?? undefined;
    const instance = bestStart(this.geometry, this.layoutOf(layout), profile);
    const step = instance === undefined ? null : { layout: this.numberOf([...this.layoutOf(layout), instance]), start: instance.start };
    this.steps.set(key, step);
    return step ?? undefined;
  }

  /** Whether an instance may begin at this very place beside what the layout has. */
  canPlace(layout: number, profile: string, start: number): boolean {
    return canAdd(this.geometry, this.layoutOf(layout), { profile, start });
  }

  /** The smallest profile that has the memory, in MiB, and the part of the compute; undefined when none has. */
  smallestFor(memoryMib: number, computeShare: number): string | undefined {
    return this.geometry.profiles.find((profile) => !profile.hasMediaExtensions && profile.usableMib >= memoryMib && profile.computeSlices / this.geometry.computeSlices >= computeShare)?.name;
  }

  profile(name: string): MigProfile | undefined {
    return profileOf(this.geometry, name);
  }

  profileNames(): readonly string[] {
    return this.geometry.profiles.map((profile) => profile.name);
  }

  /** The layout with an instance at this very place; refused when it would overlap. */
  place(layout: number, profile: string, start: number): number {
    const step = this.add(layout, profile);
    if (step?.start === start) return step.layout;
    const instance = { profile, start };
    if (!canAdd(this.geometry, this.layoutOf(layout), instance)) throw new Error(`There is no room for ${profile} at slice ${start}.`);
    return this.numberOf([...this.layoutOf(layout), instance]);
  }


  remove(layout: number, profile: string, start: number): number {
    return this.numberOf(this.layoutOf(layout).filter((instance) => instance.profile !== profile || instance.start !== start));
  }

  /** Compute and memory slices that one could still fill, together; less is a tighter fit. */
  room(layout: number): number {
    const known = this.rooms[layout];
    if (known !== undefined) return known;
    const room = this.geometry.profiles.reduce((sum, profile) => sum + startsFor(this.geometry, this.layoutOf(layout), profile.name).length * profile.memorySlices, 0);
    this.rooms[layout] = room;
    return room;
  }

  /** Parts of the GPU that an instance takes: of its compute and of its memory slices. */
  sharesOf(profile: string): { readonly compute: number; readonly memory: number } | undefined {
    const found = profileOf(this.geometry, profile);
    return found === undefined ? undefined : { compute: found.computeSlices / this.geometry.computeSlices, memory: found.memorySlices / this.geometry.memorySlices };
  }

  private numberOf(layout: MigLayout): number {
    const sorted = [...layout].sort((one, other) => one.start - other.start);
    const key = sorted.map(({ profile, start }) => `${profile}@${start}`).join();
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    this.layouts.push(sorted);
    this.numbers.set(key, this.layouts.length - 1);
    return this.layouts.length - 1;
  }
}
