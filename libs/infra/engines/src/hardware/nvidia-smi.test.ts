import { describe, expect, test } from '@jest/globals';
import { MachineHardwareProbe } from './machine-hardware-probe.js';
import { parseNvidiaSmi } from './nvidia-smi.js';

describe('GPUs', () => {
  test('names become types of the catalogue; unknown ones keep their words', () => {
    const output = 'GPU-1, NVIDIA H100 80GB HBM3, 81559, Enabled\nGPU-2, NVIDIA L40S, 46068, [N/A]\nGPU-3, NVIDIA A100-SXM4-80GB, 81920\nGPU-4, NVIDIA GeForce RTX 4090, 24564\n';
    expect(parseNvidiaSmi(output).map(({ type, device }) => [device, type])).toEqual([['GPU-1', 'h100'], ['GPU-2', 'l40s'], ['GPU-3', 'a100'], ['GPU-4', 'geforce-rtx-4090']]);
    expect(parseNvidiaSmi(output)[0]).toMatchObject({ memoryBytes: 81_559 * 1_048_576, isMigOn: true, hasMig: true });
    expect(parseNvidiaSmi(output)[1]).toMatchObject({ isMigOn: false, hasMig: false });
  });

  test('what is not a GPU line is passed over', () => {
    expect(parseNvidiaSmi('No devices were found\n\nGPU-1, X, [N/A]\n')).toEqual([]);
  });

  test('this machine is at least one CPU accelerator, smaller than the machine', async () => {
    const { accelerators, memoryBytes, cpuCores } = await new MachineHardwareProbe().detect();
    expect(accelerators[0]).toMatchObject({ type: 'cpu', device: null });
    expect(accelerators[0]?.memoryBytes).toBeLessThan(memoryBytes);
    expect(cpuCores).toBeGreaterThanOrEqual(1);
  });
});
