import { availableParallelism, hostname, totalmem } from 'node:os';
import type { DetectedHardware, HardwareProbe } from '@penstock/domain-serving';
import { detectNvidiaGpus } from './nvidia-smi.js';

/** Memory that replicas on the CPU may fill; the rest is for the system and the platform itself. */
const CPU_MEMORY_SHARE = 0.8;
const HOSTNAME_MAX = 253;

/** What this machine has: one CPU accelerator, and every NVIDIA GPU. */
export class MachineHardwareProbe implements HardwareProbe {
  async detect(): Promise<DetectedHardware> {
    const limit = process.constrainedMemory();
    const memoryBytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
    const cpu = { type: 'cpu', memoryBytes: Math.floor(memoryBytes * CPU_MEMORY_SHARE), device: null };
    return {
      hostname: hostname().slice(0, HOSTNAME_MAX), cpuCores: availableParallelism(), memoryBytes,
      accelerators: [cpu, ...(await detectNvidiaGpus())],
    };
  }
}
