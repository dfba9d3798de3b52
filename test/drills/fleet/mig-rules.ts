import type { InstanceBody } from './audited-bodies.js';

interface Profile {
  readonly starts: readonly number[];
  readonly memorySlices: number;
  readonly computeSlices: number;
  readonly usableMib: number;
}

/**
 * What NVIDIA's MIG user guide and `nvidia-smi mig -lgip` and `-lgipp` say of 80 GB GPUs, written down once more for the audit, so
 * that it does not repeat a fault of the planner's catalogue.
 */
const H100: Readonly<Record<string, Profile>> = {
  '1g.10gb': { starts: [0, 1, 2, 3, 4, 5, 6], memorySlices: 1, computeSlices: 1, usableMib: 9_984 },
  '1g.20gb': { starts: [0, 2, 4, 6], memorySlices: 2, computeSlices: 1, usableMib: 20_096 },
  '2g.20gb': { starts: [0, 2, 4], memorySlices: 2, computeSlices: 2, usableMib: 20_096 },
  '3g.40gb': { starts: [0, 4], memorySlices: 4, computeSlices: 3, usableMib: 40_448 },
  '4g.40gb': { starts: [0], memorySlices: 4, computeSlices: 4, usableMib: 40_448 },
  '7g.80gb': { starts: [0], memorySlices: 8, computeSlices: 7, usableMib: 81_152 },
};
const A100: typeof H100 = {
  ...H100,
  '1g.10gb': { starts: [0, 1, 2, 3, 4, 5, 6], memorySlices: 1, computeSlices: 1, usableMib: 9_728 },
  '1g.20gb': { starts: [0, 2, 4, 6], memorySlices: 2, computeSlices: 1, usableMib: 19_968 },
  '2g.20gb': { starts: [0, 2, 4], memorySlices: 2, computeSlices: 2, usableMib: 19_968 },
  '3g.40gb': { starts: [0, 4], memorySlices: 4, computeSlices: 3, usableMib: 40_192 },
  '4g.40gb': { starts: [0], memorySlices: 4, computeSlices: 4, usableMib: 40_192 },
  '7g.80gb': { starts: [0], memorySlices: 8, computeSlices: 7, usableMib: 80_896 },
};
const MEMORY_SLICES = 8;
const COMPUTE_SLICES = 7;
const MEBIBYTE = 1_048_576;

/** What is illegal about these instances on one GPU; undefined when the GPU's driver would allow them. */
export function migProblem(type: string, instances: readonly InstanceBody[]): string | undefined {
  const owner = new Array<string | undefined>(MEMORY_SLICES).fill(undefined);
  let compute = 0;
  for (const { profile, start } of instances) {
    const facts = profilesOf(type)?.[profile];
    if (facts === undefined) return `${type} has no profile ${profile}`;
    if (!facts.starts.includes(start)) return `${profile} cannot begin at slice ${start}`;
    for (let slice = start; slice < start + facts.memorySlices; slice += 1) {
      if (owner[slice] !== undefined) return `slice ${slice} belongs to ${owner[slice]} and to ${profile}@${start}`;
      owner[slice] = `${profile}@${start}`;
    }
    compute += facts.computeSlices;
  }
  return compute > COMPUTE_SLICES ? `${compute} compute slices are given away of ${COMPUTE_SLICES}` : undefined;
}

/** Bytes that an instance of the profile has; 0 for one that does not exist. */
export function instanceBytes(type: string, profile: string): number {
  return (profilesOf(type)?.[profile]?.usableMib ?? 0) * MEBIBYTE;
}

/** Memory slices at which an instance of the profile may begin. */
export function startsOf(type: string, profile: string): readonly number[] {
  return profilesOf(type)?.[profile]?.starts ?? [];
}

function profilesOf(type: string): typeof H100 | undefined {
  return type === 'h100' ? H100 : type === 'a100' ? A100 : undefined;
}
