/** A kind of machine: its GPUs, the groups of them that reach each other by NVLink, its CPU and memory. */
export interface NodeShape {
  readonly shape: string;
  readonly gpuType: string;
  readonly gpus: number;
  /** Indexes of GPUs joined by NVLink; a tensor-parallel group stays inside one of these. Without NVLink each GPU is alone. */
  readonly islands: readonly (readonly number[])[];
  /** Largest tensor parallelism that pays, also over PCIe. */
  readonly tensorParallelMax: number;
  readonly cpuMilli: number;
  readonly hostMemoryMib: number;
  /** Where CPU and memory come from; the rest is from the vendors' node descriptions. */
  readonly hostFrom: string;
}

const range = (from: number, count: number): readonly number[] => Array.from({ length: count }, (_, index) => from + index);
const alone = (count: number): readonly (readonly number[])[] => range(0, count).map((index) => [index]);

const GIB = 1_024;

export const NODE_SHAPES: readonly NodeShape[] = [
  { shape: 'hgx-8xH100-SXM', gpuType: 'H100-80GB-SXM', gpus: 8, islands: [range(0, 8)], tensorParallelMax: 8, cpuMilli: 192_000, hostMemoryMib: 2_048 * GIB, hostFrom: 'AWS p5.48xlarge, from memory' },
  { shape: 'hgx-8xA100-SXM', gpuType: 'A100-80GB-SXM', gpus: 8, islands: [range(0, 8)], tensorParallelMax: 8, cpuMilli: 96_000, hostMemoryMib: 1_152 * GIB, hostFrom: 'AWS p4de.24xlarge, from memory' },
  { shape: 'h100-4x-SXM', gpuType: 'H100-80GB-SXM', gpus: 4, islands: [range(0, 4)], tensorParallelMax: 4, cpuMilli: 96_000, hostMemoryMib: 1_024 * GIB, hostFrom: 'half of an HGX node' },
  { shape: 'h100-pcie-pairs', gpuType: 'H100-80GB-PCIe', gpus: 4, islands: [range(0, 2), range(2, 2)], tensorParallelMax: 2, cpuMilli: 96_000, hostMemoryMib: 1_024 * GIB, hostFrom: 'half of an HGX node' },
  { shape: 'l4-1x', gpuType: 'L4-24GB', gpus: 1, islands: alone(1), tensorParallelMax: 1, cpuMilli: 4_000, hostMemoryMib: 16 * GIB, hostFrom: 'AWS g6.xlarge, from memory' },
  { shape: 'l4-4x', gpuType: 'L4-24GB', gpus: 4, islands: alone(4), tensorParallelMax: 2, cpuMilli: 48_000, hostMemoryMib: 192 * GIB, hostFrom: 'AWS g6.12xlarge, from memory' },
  { shape: 'l4-8x', gpuType: 'L4-24GB', gpus: 8, islands: alone(8), tensorParallelMax: 2, cpuMilli: 192_000, hostMemoryMib: 768 * GIB, hostFrom: 'AWS g6.48xlarge, from memory' },
];

export function nodeShapeOf(shape: string): NodeShape | undefined {
  return NODE_SHAPES.find((one) => one.shape === shape);
}
