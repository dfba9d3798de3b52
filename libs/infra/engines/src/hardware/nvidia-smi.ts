import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { DetectedAccelerator } from '@penstock/domain-serving';

const run = promisify(execFile);
const NVIDIA_SMI_TIMEOUT_MS = 10_000;
const MEBIBYTE = 1_048_576;

/** Marketing names to the types of the catalogue; longer names first, since `L4` is in `L40S`. */
const KNOWN_TYPES = ['gb200', 'b200', 'h200', 'h100', 'gh200', 'a100', 'l40s', 'l40', 'a10g', 'a10', 'l4', 't4', 'v100'] as const;

/** GPUs as `nvidia-smi` reports them; none when the tool is missing or fails. */
export async function detectNvidiaGpus(): Promise<readonly DetectedAccelerator[]> {
  const args = ['--query-gpu=uuid,name,memory.total', '--format=csv,noheader,nounits'];
  const output = await run('nvidia-smi', args, { timeout: NVIDIA_SMI_TIMEOUT_MS }).then(({ stdout }) => stdout, () => '');
  return parseNvidiaSmi(output);
}

/** Reads lines such as `GPU-8f…, NVIDIA H100 80GB HBM3, 81559`. A line that is not of this form is passed over. */
export function parseNvidiaSmi(output: string): readonly DetectedAccelerator[] {
  const found: DetectedAccelerator[] = [];
  for (const line of output.split('\n')) {
    const [device, name, memory] = line.split(',').map((field) => field.trim());
    const mebibytes = Number(memory);
    if (device === undefined || name === undefined || device === '' || !Number.isInteger(mebibytes) || mebibytes <= 0) continue;
    found.push({ type: typeOf(name), memoryBytes: mebibytes * MEBIBYTE, device });
  }
  return found;
}

function typeOf(name: string): string {
  const words = name.toLowerCase().split(/[^a-z0-9]+/);
  const known = KNOWN_TYPES.find((type) => words.includes(type));
  return known ?? words.filter((word) => word !== '' && word !== 'nvidia').join('-').slice(0, 50);
}
