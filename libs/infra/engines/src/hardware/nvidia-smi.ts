import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { acceleratorTypeOf, type DetectedAccelerator } from '@penstock/domain-serving';
import { parseIslands } from './nvidia-topology.js';

const run = promisify(execFile);
const NVIDIA_SMI_TIMEOUT_MS = 10_000;
const OUTPUT_BYTES_MAX = 4_194_304;
const MEBIBYTE = 1_048_576;

/** Runs `nvidia-smi` and gives back what it prints; rejects with its own words when it fails. */
export type NvidiaSmi = (args: readonly string[]) => Promise<string>;

export const nvidiaSmi: NvidiaSmi = async (args) => {
  const { stdout } = await run('nvidia-smi', [...args], { timeout: NVIDIA_SMI_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX }).catch((error: Error & { stdout?: string; stderr?: string }) => {
    const words = [error.stdout, error.stderr].map((text) => text?.trim()).filter((text) => text !== undefined && text !== '').join(' ');
    throw new Error(`nvidia-smi ${args.join(' ')}: ${words === '' ? error.message : words}`.slice(0, 1_000), { cause: error });
  });
  return stdout;
};

/** A GPU as `nvidia-smi` reports it. */
export interface NvidiaGpu extends DetectedAccelerator {
  readonly device: string;
  readonly isMigOn: boolean;
  /** Whether it can be partitioned at all. */
  readonly hasMig: boolean;
}

/** GPUs with their NVLink islands; none when the tool is missing or fails. */
export async function detectNvidiaGpus(smi: NvidiaSmi = nvidiaSmi): Promise<readonly NvidiaGpu[]> {
  const output = await smi(['--query-gpu=uuid,name,memory.total,mig.mode.current', '--format=csv,noheader,nounits']).catch(() => '');
  const gpus = parseNvidiaSmi(output);
  if (gpus.length < 2) return gpus;
  const islands = parseIslands(await smi(['topo', '-m']).catch(() => ''));
  return gpus.map((gpu, index) => ({ ...gpu, islandId: islands.get(index) ?? null }));
}

/** Reads lines such as `GPU-8f…, NVIDIA H100 80GB HBM3, 81559, Disabled`. A line that is not of this form is passed over. */
export function parseNvidiaSmi(output: string): readonly NvidiaGpu[] {
  const found: NvidiaGpu[] = [];
  for (const line of output.split('\n')) {
    const [device, name, memory, mig] = line.split(',').map((field) => field.trim());
    const mebibytes = Number(memory);
    if (device === undefined || name === undefined || device === '' || !Number.isInteger(mebibytes) || mebibytes <= 0) continue;
    found.push({ type: acceleratorTypeOf(name), memoryBytes: mebibytes * MEBIBYTE, device, islandId: null, isMigOn: mig === 'Enabled', hasMig: mig === 'Enabled' || mig === 'Disabled' });
  }
  return found;
}
