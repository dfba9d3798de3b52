import { availableParallelism, hostname, totalmem } from 'node:os';
import type { DetectedAccelerator, DetectedHardware, HardwareProbe, MigDriver } from '@penstock/domain-serving';
import { NvidiaMigDriver } from './nvidia-mig-driver.js';
import { detectNvidiaGpus, nvidiaSmi, type NvidiaGpu, type NvidiaSmi } from './nvidia-smi.js';

/** Memory that replicas on the CPU may fill; the rest is for the system and the platform itself. */
const CPU_MEMORY_SHARE = 0.8;
const HOSTNAME_MAX = 253;

/** What this machine has: one CPU accelerator, and every NVIDIA GPU with its links and MIG instances. */
export class MachineHardwareProbe implements HardwareProbe {
  private readonly mig: MigDriver;

  constructor(private readonly smi: NvidiaSmi = nvidiaSmi) {
    this.mig = new NvidiaMigDriver(smi);
  }

  async detect(): Promise<DetectedHardware> {
    const limit = process.constrainedMemory();
    const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
    const cpu = { type: 'cpu', memoryBytes: Math.floor(memoryBytes * CPU_MEMORY_SHARE), device: null };
    const gpus = await detectNvidiaGpus(this.smi);
    return {
      hostname: hostname().slice(0, HOSTNAME_MAX), cpuCores: availableParallelism(), memoryBytes,
      accelerators: [cpu, ...(await Promise.all(gpus.map((gpu) => this.describe(gpu))))],
    };
  }

  private async describe({ isMigOn, hasMig, ...gpu }: NvidiaGpu): Promise<DetectedAccelerator> {
    if (!hasMig) return gpu;
    const instances = isMigOn ? await this.mig.list(gpu.device).catch(() => []) : [];
    return { ...gpu, mig: { isEnabled: isMigOn, instances } };
  }
}
