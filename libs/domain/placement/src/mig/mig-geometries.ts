import type { MigGeometry } from './mig-geometry.js';

/**
 * Every GPU type that can be partitioned, with the profiles its driver offers. Memory is what the instance reports, in
 * MiB, not what the profile's name says: a B200's 1g.23gb has 20,992 MiB. Values from a mock or an estimate say so.
 */
export const MIG_GEOMETRIES: readonly MigGeometry[] = [
  {
    gpuType: 'A100-40GB',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.5gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 4864, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.5gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 4864, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.10gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 9856, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.10gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 9856, memoryFrom: 'nvidia-smi', multiprocessors: 28, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.20gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 19968, memoryFrom: 'nvidia-smi', multiprocessors: 42, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.20gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 19968, memoryFrom: 'nvidia-smi', multiprocessors: 56, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.40gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 40192, memoryFrom: 'nvidia-smi', multiprocessors: 98, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'NVIDIA/go-nvml@2f9e261f pkg/nvml/mock/*',
      'openshift/instaslice-operator@9f4fc07f test/utils/emulated.go',
      'published nvidia-smi mig -lgip listing of an A100-SXM4-40GB',
    ],
  },
  {
    gpuType: 'A100-80GB',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.10gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 9728, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.10gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 9728, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.20gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 19968, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.20gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 19968, memoryFrom: 'nvidia-smi', multiprocessors: 28, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.40gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 40192, memoryFrom: 'nvidia-smi', multiprocessors: 42, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.40gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 40192, memoryFrom: 'nvidia-smi', multiprocessors: 56, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.80gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 80896, memoryFrom: 'nvidia-smi', multiprocessors: 98, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'NVIDIA/go-nvml@2f9e261f pkg/nvml/mock/*',
      'openshift/instaslice-operator@9f4fc07f test/utils/emulated.go',
    ],
  },
  {
    gpuType: 'H100-80GB-SXM',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.10gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 9984, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.10gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 9984, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.20gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 20096, memoryFrom: 'nvidia-smi', multiprocessors: 26, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.20gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 20096, memoryFrom: 'nvidia-smi', multiprocessors: 32, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.40gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 40448, memoryFrom: 'nvidia-smi', multiprocessors: 60, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.40gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 40448, memoryFrom: 'nvidia-smi', multiprocessors: 64, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.80gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 81152, memoryFrom: 'nvidia-smi', multiprocessors: 132, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'https://jbarrow.ai/field_notes/nvidia-mig (nvidia-smi mig -lgip/-lgipp listings)',
    ],
  },
  {
    gpuType: 'H100-80GB-PCIe',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.10gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 9984, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.10gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 9984, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.20gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 20096, memoryFrom: 'nvidia-smi', multiprocessors: 14, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.20gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 20096, memoryFrom: 'nvidia-smi', multiprocessors: 30, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.40gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 40448, memoryFrom: 'nvidia-smi', multiprocessors: 46, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.40gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 40448, memoryFrom: 'nvidia-smi', multiprocessors: 62, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.80gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 81152, memoryFrom: 'nvidia-smi', multiprocessors: 114, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
    ],
  },
  {
    gpuType: 'H100-94GB-NVL',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.12gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 11008, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.12gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 11008, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.24gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 22144, memoryFrom: 'nvidia-smi', multiprocessors: 26, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.24gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 22144, memoryFrom: 'nvidia-smi', multiprocessors: 32, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.47gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 47488, memoryFrom: 'nvidia-smi', multiprocessors: 60, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.47gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 47488, memoryFrom: 'nvidia-smi', multiprocessors: 64, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.94gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 95360, memoryFrom: 'nvidia-smi', multiprocessors: 132, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'published nvidia-smi mig -lgip/-lgipp listing of an Azure NC40ads_H100_v5 VM',
    ],
  },
  {
    gpuType: 'H100-96GB-GH200',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'assumed',
    profiles: [
      { name: '1g.12gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 11264, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.12gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 11264, memoryFrom: 'nvidia-smi', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.24gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 23552, memoryFrom: 'nvidia-smi', multiprocessors: 26, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.24gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 23552, memoryFrom: 'nvidia-smi', multiprocessors: 32, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.48gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 47616, memoryFrom: 'nvidia-smi', multiprocessors: 60, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.48gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 47616, memoryFrom: 'nvidia-smi', multiprocessors: 64, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.96gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 95232, memoryFrom: 'nvidia-smi', multiprocessors: 132, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
    ],
  },
  {
    gpuType: 'H200-141GB',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'emulator',
    profiles: [
      { name: '1g.18gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 16384, memoryFrom: 'third_party', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.18gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 16384, memoryFrom: 'third_party', multiprocessors: 16, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.35gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 33280, memoryFrom: 'estimate', multiprocessors: 26, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.35gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 33280, memoryFrom: 'third_party', multiprocessors: 32, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.71gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 65536, memoryFrom: 'estimate', multiprocessors: 60, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.71gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 65536, memoryFrom: 'estimate', multiprocessors: 64, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.141gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 143360, memoryFrom: 'third_party', multiprocessors: 132, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'openshift/instaslice-operator@9f4fc07f test/utils/emulated.go',
    ],
  },
  {
    gpuType: 'B200-180GB',
    memorySlices: 8,
    computeSlices: 7,
    startsFrom: 'assumed',
    profiles: [
      { name: '1g.23gb', giProfileId: 19, computeSlices: 1, memorySlices: 1, usableMib: 20992, memoryFrom: 'third_party', multiprocessors: 18, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 7, hasMediaExtensions: false },
      { name: '1g.23gb+me', giProfileId: 20, computeSlices: 1, memorySlices: 1, usableMib: 20992, memoryFrom: 'estimate', multiprocessors: 18, starts: [0, 1, 2, 3, 4, 5, 6], maxInstances: 1, hasMediaExtensions: true },
      { name: '1g.45gb', giProfileId: 15, computeSlices: 1, memorySlices: 2, usableMib: 41984, memoryFrom: 'estimate', multiprocessors: 18, starts: [0, 2, 4, 6], maxInstances: 4, hasMediaExtensions: false },
      { name: '2g.45gb', giProfileId: 14, computeSlices: 2, memorySlices: 2, usableMib: 41984, memoryFrom: 'estimate', multiprocessors: 36, starts: [0, 2, 4], maxInstances: 3, hasMediaExtensions: false },
      { name: '3g.90gb', giProfileId: 9, computeSlices: 3, memorySlices: 4, usableMib: 83968, memoryFrom: 'estimate', multiprocessors: 54, starts: [0, 4], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.90gb', giProfileId: 5, computeSlices: 4, memorySlices: 4, usableMib: 83968, memoryFrom: 'estimate', multiprocessors: 72, starts: [0], maxInstances: 1, hasMediaExtensions: false },
      { name: '7g.180gb', giProfileId: 0, computeSlices: 7, memorySlices: 8, usableMib: 183359, memoryFrom: 'third_party', multiprocessors: 126, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'NVIDIA/go-nvml@2f9e261f pkg/nvml/mock/*',
    ],
  },
  {
    gpuType: 'A30-24GB',
    memorySlices: 4,
    computeSlices: 4,
    startsFrom: 'verified',
    profiles: [
      { name: '1g.6gb', giProfileId: 14, computeSlices: 1, memorySlices: 1, usableMib: 5836, memoryFrom: 'mock', multiprocessors: 14, starts: [0, 1, 2, 3], maxInstances: 4, hasMediaExtensions: false },
      { name: '1g.6gb+me', giProfileId: 21, computeSlices: 1, memorySlices: 1, usableMib: 5836, memoryFrom: 'mock', multiprocessors: 14, starts: [0, 1, 2, 3], maxInstances: 1, hasMediaExtensions: true },
      { name: '2g.12gb', giProfileId: 5, computeSlices: 2, memorySlices: 2, usableMib: 11672, memoryFrom: 'mock', multiprocessors: 28, starts: [0, 2], maxInstances: 2, hasMediaExtensions: false },
      { name: '4g.24gb', giProfileId: 0, computeSlices: 4, memorySlices: 4, usableMib: 23344, memoryFrom: 'mock', multiprocessors: 56, starts: [0], maxInstances: 1, hasMediaExtensions: false },
    ],
    sources: [
      'https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html',
      'NVIDIA/mig-parted@bd7160f4 deployments/systemd/config-default.yaml',
      'NVIDIA/go-nvml@2f9e261f pkg/nvml/mock/*',
    ],
  },
];

/** Reported memory may differ from that of the largest instance by this share. */
const MEMORY_TOLERANCE = 0.15;
const MIB = 1_048_576;

/** The geometry for what a node reports, such as `a100` with 40 GB; undefined when no GPU of this kind can be partitioned. */
export function migGeometryLike(reported: string, memoryBytes: number): MigGeometry | undefined {
  const memoryMib = memoryBytes / MIB;
  const kinds = MIG_GEOMETRIES.filter((one) => one.gpuType === reported || one.gpuType.toLowerCase().startsWith(`${reported}-`));
  return kinds.find((one) => Math.abs((one.profiles.at(-1)?.usableMib ?? 0) - memoryMib) <= MEMORY_TOLERANCE * memoryMib);
}
