import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { acceleratorTypeOf, type DetectedAccelerator } from '@penstock/domain-serving';

const run = promisify(execFile);
const NVIDIA_SMI_TIMEOUT_MS = 10_000;
const MEBIBYTE = 1_048_576;

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
    found.push({ type: acceleratorTypeOf(name), memoryBytes: mebibytes * MEBIBYTE, device });
  }
  return found;
}
