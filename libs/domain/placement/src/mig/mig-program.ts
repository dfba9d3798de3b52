import type { IntegerProgram, ProgramConstraint, ProgramVariable } from '../optimiser.js';
import type { MigAssignment, MigDemand } from './mig-demand.js';
import type { MigGeometry } from './mig-geometry.js';
import { layOut, maximalMultisets } from './mig-layouts.js';
import type { PackedGpu } from './pack-mig.js';

/** The program, and how its values are read back. */
export interface MigProgram {
  readonly program: IntegerProgram;
  read(values: readonly number[]): readonly PackedGpu[];
}

/**
 * The fewest GPUs as an integer program: how many GPUs get each maximal multiset of instances, and how many instances of
 * each profile each demand gets. It is exact: every legal layout is part of one with a maximal multiset.
 */
export function migProgram(geometry: MigGeometry, demands: readonly MigDemand[]): MigProgram {
  const names = geometry.profiles.map((profile) => profile.name).filter((name) => demands.some((demand) => demand.options.some((option) => option.profile === name)));
  const multisets = maximalMultisets(geometry, names);
  const uses = demands.flatMap((demand) => demand.options.map((option) => ({ demand: demand.id, option })));
  const variables: ProgramVariable[] = [
    ...multisets.map((multiset) => ({ name: `gpu:${multiset.join('-')}`, cost: 1, isWhole: true })),
    ...uses.map(({ demand, option }) => ({ name: `use:${demand}:${option.profile}`, cost: 0, isWhole: true })),
  ];
  const useOf = (test: (use: MigAssignment) => boolean, times: (use: MigAssignment) => number): ProgramConstraint['terms'] =>
    uses.flatMap((use, index) => (test(use) ? [{ variable: multisets.length + index, times: times(use) }] : []));
  const constraints: ProgramConstraint[] = [
    ...demands.filter((demand) => demand.rate > 0).map((demand) => ({ name: `rate:${demand.id}`, atLeast: 1, terms: useOf((use) => use.demand === demand.id, (use) => use.option.rate / demand.rate) })),
    ...names.map((name, profile) => ({
      name: `instances:${name}`,
      atLeast: 0,
      terms: [...multisets.map((multiset, variable) => ({ variable, times: multiset[profile] as number })), ...useOf((use) => use.option.profile === name, () => -1)],
    })),
  ];
  return { program: { variables, constraints }, read: (values) => readGpus(geometry, names, multisets, uses, values) };
}

function readGpus(geometry: MigGeometry, names: readonly string[], multisets: readonly (readonly number[])[], uses: readonly MigAssignment[], values: readonly number[]): readonly PackedGpu[] {
  const waiting = new Map<string, MigAssignment[]>(names.map((name) => [name, []]));
  for (const [index, use] of uses.entries()) for (let count = 0; count < (values[multisets.length + index] as number); count += 1) waiting.get(use.option.profile)?.push(use);
  const gpus: PackedGpu[] = [];
  for (const [index, multiset] of multisets.entries()) {
    const layout = layOut(geometry, multiset.flatMap((count, profile) => Array.from({ length: count }, () => names[profile] as string)));
    if (layout === undefined) throw new Error(`${geometry.gpuType} has no layout for ${multiset.join('-')}.`);
    for (let count = 0; count < (values[index] as number); count += 1) {
      gpus.push(layout.flatMap((instance) => {
        const use = waiting.get(instance.profile)?.shift();
        return use === undefined ? [] : [{ ...instance, ...use }];
      }));
    }
  }
  return gpus;
}
