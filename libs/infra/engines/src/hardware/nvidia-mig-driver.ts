import type { DetectedMigInstance, MigDriver, MigPlace } from '@penstock/domain-serving';
import { nvidiaSmi, type NvidiaSmi } from './nvidia-smi.js';

/** A GPU instance as `nvidia-smi mig -lgi` lists it. */
interface GpuInstance extends MigPlace {
  readonly gpuInstanceId: number;
}

/**
 * MIG by `nvidia-smi`: a GPU instance at a named place with one compute instance over all of it (`mig -cgi PROFILE:START -C`), and
 * both taken away again (`mig -dci`, `mig -dgi`). The tool needs administrator's rights for changes.
 */
export class NvidiaMigDriver implements MigDriver {
  constructor(private readonly smi: NvidiaSmi = nvidiaSmi) {}

  async list(device: string): Promise<readonly DetectedMigInstance[]> {
    const instances = await this.instances(device);
    if (instances.length === 0) return [];
    const [list, details] = await Promise.all([this.smi(['-L']), this.smi(['-q', '-x', '-i', device])]);
    const uuids = uuidsByInstance(parseMigUuids(list, device), details);
    return instances.map(({ profile, start, gpuInstanceId }) => ({ profile, start, uuid: uuids.get(gpuInstanceId) ?? null }));
  }

  async create(device: string, { profile, start }: MigPlace): Promise<void> {
    await this.smi(['mig', '-i', device, '-cgi', `${profile}:${start}`, '-C']);
  }

  async destroy(device: string, { profile, start }: MigPlace): Promise<void> {
    const found = (await this.instances(device)).find((instance) => instance.profile === profile && instance.start === start);
    if (found === undefined) return;
    const instance = ['-i', device, '-gi', String(found.gpuInstanceId)];
    // A crash after the first step leaves a GPU instance without a compute instance, which the second step takes all the same.
    await this.smi(['mig', '-dci', ...instance]).catch((error: Error) => {
      if (!/no (compute|mig)|not found/i.test(error.message)) throw error;
    });
    await this.smi(['mig', '-dgi', ...instance]);
  }

  private async instances(device: string): Promise<readonly GpuInstance[]> {
    const output = await this.smi(['mig', '-i', device, '-lgi']).catch((error: Error) => {
      if (/no gpu instances found/i.test(error.message)) return '';
      throw error;
    });
    return parseGpuInstances(output);
  }
}

/** Reads rows such as `|   0  MIG 1g.5gb          19       13          6:1     |`: GPU, profile, its number, the instance, start and size. */
export function parseGpuInstances(output: string): readonly GpuInstance[] {
  return output.split('\n').flatMap((line) => {
    const found = /^\|\s*\d+\s+MIG\s+(\S+)\s+\d+\s+(\d+)\s+(\d+):\d+\s*\|?\s*$/.exec(line);
    return found === null ? [] : [{ profile: found[1] ?? '', gpuInstanceId: Number(found[2]), start: Number(found[3]) }];
  });
}

/** UUIDs of the MIG devices of a GPU by their index, out of `nvidia-smi -L`. */
export function parseMigUuids(output: string, device: string): ReadonlyMap<number, string> {
  const uuids = new Map<number, string>();
  let isOurs = false;
  for (const line of output.split('\n')) {
    const gpu = /^GPU \d+:.*\(UUID: (GPU-[^)]+)\)/.exec(line);
    if (gpu !== null) isOurs = gpu[1] === device;
    const mig = /^\s+MIG .*Device\s+(\d+): \(UUID: (MIG-[^)]+)\)/.exec(line);
    if (isOurs && mig !== null) uuids.set(Number(mig[1]), mig[2] ?? '');
  }
  return uuids;
}

/** UUIDs by GPU instance: the details say which instance each MIG device is of. */
function uuidsByInstance(uuids: ReadonlyMap<number, string>, details: string): ReadonlyMap<number, string> {
  const byInstance = new Map<number, string>();
  for (const [, block] of details.matchAll(/<mig_device>([\s\S]*?)<\/mig_device>/g)) {
    const index = Number(/<index>(\d+)<\/index>/.exec(block ?? '')?.[1] ?? Number.NaN);
    const instance = Number(/<gpu_instance_id>(\d+)<\/gpu_instance_id>/.exec(block ?? '')?.[1] ?? Number.NaN);
    const uuid = uuids.get(index);
    if (uuid !== undefined && Number.isInteger(instance)) byInstance.set(instance, uuid);
  }
  return byInstance;
}
