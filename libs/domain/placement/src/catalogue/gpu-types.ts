/** What a GPU type is and costs. Throughput is dense, without sparsity; bandwidths are per direction. */
export interface GpuType {
  readonly type: string;
  /** Nominal. */
  readonly memoryMib: number;
  /** What an engine finds; plans count with this. */
  readonly usableMib: number;
  readonly usableFrom: string;
  readonly bandwidthGbPerS: number;
  readonly denseTflops: { readonly bf16: number; readonly fp8: number | null; readonly int8: number | null; readonly fp4: number | null };
  /** 0 without NVLink. */
  readonly nvlinkGbPerS: number;
  readonly pcieGbPerS: number;
  /** The `gpuType` of its MIG geometry; null when it cannot be partitioned. */
  readonly migGeometry: string | null;
  /** Typical dollars for one GPU and hour; null when no price was found. Ballparks for planning, not quotes. */
  readonly price: { readonly onDemand: number | null; readonly spot: number | null; readonly status: string; readonly sources: readonly string[] };
  readonly source: string;
}

/** Known types; as of 2026. */
export const GPU_TYPES: readonly GpuType[] = [
  {
    type: 'H100-80GB-SXM',
    memoryMib: 81920,
    usableMib: 81101,
    usableFrom: '79.2 GiB, from the memory that seven real engines had',
    bandwidthGbPerS: 3350,
    denseTflops: { bf16: 989, fp8: 1978, int8: 1978, fp4: null },
    nvlinkGbPerS: 450,
    pcieGbPerS: 64,
    migGeometry: 'H100-80GB-SXM',
    price: { onDemand: 3.5, spot: 1.5, status: 'ballpark', sources: ['Lambda rows of skypilot-catalog v8 (2026): 1x 4.29, 2x 8.38, 4x 16.36 $/h', 'mercatus-ai.com provider-tier ranges, May 2026: hyperscaler 3.50-5.00, specialty 2.50-3.50, long-tail 1.99-2.50', 'spot = 50-65 % below on-demand (secondary source)'] },
    source: 'aiconfigurator@095f58a5 systems/h100_sxm.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'H100-80GB-PCIe',
    memoryMib: 81920,
    usableMib: 81101,
    usableFrom: 'as H100 SXM',
    bandwidthGbPerS: 2000,
    denseTflops: { bf16: 756.5, fp8: 1513, int8: 1513, fp4: null },
    nvlinkGbPerS: 0,
    pcieGbPerS: 64,
    migGeometry: 'H100-80GB-PCIe',
    price: { onDemand: 3.29, spot: null, status: 'listed', sources: ['Lambda rows of skypilot-catalog v8 (2026): 3.29 $/h'] },
    source: 'aiconfigurator@095f58a5 systems/h100_pcie.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'A100-80GB-SXM',
    memoryMib: 81920,
    usableMib: 80896,
    usableFrom: 'the 7g.80gb instance',
    bandwidthGbPerS: 2039,
    denseTflops: { bf16: 312, fp8: null, int8: 624, fp4: null },
    nvlinkGbPerS: 300,
    pcieGbPerS: 32,
    migGeometry: 'A100-80GB',
    price: { onDemand: 2, spot: 0.9, status: 'ballpark', sources: ['Lambda rows of skypilot-catalog v8 (2026): 8x 22.32 $/h = 2.79/GPU', 'mercatus-ai.com provider-tier ranges, May 2026: 1.50-3.00 / 1.10-1.50 / 0.80-1.10'] },
    source: 'aiconfigurator@095f58a5 systems/a100_sxm.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'A100-80GB-PCIe',
    memoryMib: 81920,
    usableMib: 80896,
    usableFrom: 'the 7g.80gb instance',
    bandwidthGbPerS: 1935,
    denseTflops: { bf16: 312, fp8: null, int8: 624, fp4: null },
    nvlinkGbPerS: 0,
    pcieGbPerS: 32,
    migGeometry: 'A100-80GB',
    price: { onDemand: 1.39, spot: null, status: 'listed', sources: ['RunPod secure-cloud row of a public price list, 2026: 1.39 $/h'] },
    source: 'aiconfigurator@095f58a5 systems/a100_pcie.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'H200-141GB-SXM',
    memoryMib: 144384,
    usableMib: 143360,
    usableFrom: 'the 7g.141gb instance',
    bandwidthGbPerS: 4800,
    denseTflops: { bf16: 989, fp8: 1978, int8: 1978, fp4: null },
    nvlinkGbPerS: 450,
    pcieGbPerS: 64,
    migGeometry: 'H200-141GB',
    price: { onDemand: 4, spot: null, status: 'ballpark', sources: ['mercatus-ai.com provider-tier ranges, May 2026: 4.50-7.00 / 3.50-4.50 / 2.50-3.50'] },
    source: 'aiconfigurator@095f58a5 systems/h200_sxm.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'B200-180GB-SXM',
    memoryMib: 184320,
    usableMib: 183359,
    usableFrom: 'whole card, third party',
    bandwidthGbPerS: 7700,
    denseTflops: { bf16: 2250, fp8: 4500, int8: 4500, fp4: 9000 },
    nvlinkGbPerS: 900,
    pcieGbPerS: 128,
    migGeometry: 'B200-180GB',
    price: { onDemand: null, spot: null, status: 'not-found', sources: [] },
    source: 'aiconfigurator@095f58a5 systems/b200_sxm.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'L4-24GB',
    memoryMib: 24576,
    usableMib: 22528,
    usableFrom: 'estimate: 22 GiB',
    bandwidthGbPerS: 300,
    denseTflops: { bf16: 121, fp8: 242, int8: 242, fp4: null },
    nvlinkGbPerS: 0,
    pcieGbPerS: 32,
    migGeometry: null,
    price: { onDemand: 0.75, spot: 0.28, status: 'unverified', sources: ['from memory: AWS g6.xlarge about 0.80, GCP g2-standard-4 about 0.71; no dated source'] },
    source: 'aiconfigurator@095f58a5 systems/l4.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'L40S-48GB',
    memoryMib: 46068,
    usableMib: 45000,
    usableFrom: 'estimate',
    bandwidthGbPerS: 864,
    denseTflops: { bf16: 362.05, fp8: 733, int8: 733, fp4: null },
    nvlinkGbPerS: 0,
    pcieGbPerS: 32,
    migGeometry: null,
    price: { onDemand: null, spot: null, status: 'not-found', sources: [] },
    source: 'aiconfigurator@095f58a5 systems/l40s.yaml (NVIDIA, Apache-2.0)',
  },
  {
    type: 'A30-24GB',
    memoryMib: 24576,
    usableMib: 23344,
    usableFrom: 'the 4g.24gb instance',
    bandwidthGbPerS: 933,
    denseTflops: { bf16: 165, fp8: null, int8: 330, fp4: null },
    nvlinkGbPerS: 0,
    pcieGbPerS: 32,
    migGeometry: 'A30-24GB',
    price: { onDemand: null, spot: null, status: 'not-found', sources: [] },
    source: 'aiconfigurator@095f58a5 systems/a30.yaml (NVIDIA, Apache-2.0)',
  },
];

/** The type by name; undefined when it is not known. */
export function gpuTypeOf(type: string): GpuType | undefined {
  return GPU_TYPES.find((one) => one.type === type);
}

/**
 * The type that a short name stands for: the first of the catalogue whose name begins with it, so that `h100` is the SXM board.
 * Undefined for a name of nothing, such as `cpu`.
 */
export function gpuTypeNamed(name: string): GpuType | undefined {
  const wanted = name.trim().toLowerCase();
  if (wanted.length < 2) return undefined;
  return GPU_TYPES.find((one) => one.type.toLowerCase() === wanted) ?? GPU_TYPES.find((one) => one.type.toLowerCase().startsWith(wanted) && !/[a-z0-9]/.test(one.type[wanted.length]?.toLowerCase() ?? '-'));
}

/** Reported memory may differ from the catalogue's by this share: drivers keep some for themselves. */
const MEMORY_TOLERANCE = 0.15;
const MIB = 1_048_576;

/** The catalogue's type for what a node reports, such as `a100` with 80 GB; undefined when no known type is like it. */
export function gpuTypeLike(reported: string, memoryBytes: number): GpuType | undefined {
  const memoryMib = memoryBytes / MIB;
  return GPU_TYPES.find((one) => one.type.toLowerCase().startsWith(`${reported}-`) && Math.abs(one.memoryMib - memoryMib) <= MEMORY_TOLERANCE * one.memoryMib) ?? gpuTypeOf(reported);
}
