/** What of a dense transformer decides its cost and its memory. */
export interface ModelShape {
  readonly parameters: number;
  readonly layers: number;
  readonly hidden: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly vocabulary: number;
}

export interface AcceleratorShape {
  /** As the driver reports it, in bytes. */
  readonly memoryBytes: number;
  /** Gigabytes per second, from the datasheet. */
  readonly memoryGBps: number;
  /** Dense 16-bit and 8-bit TFLOPS; without 8-bit units only the first. */
  readonly tflops16: number;
  readonly tflops8?: number;
  /** To another accelerator of the same node, in gigabytes per second and direction. */
  readonly linkGBps: number;
}

/** How a model lies on accelerators. */
export interface Layout {
  /** Accelerators that share each layer. */
  readonly tensorParallel: number;
  /** Bytes per weight: 2 for bf16, 1 for fp8, 0.55 for int4 with its group scales. */
  readonly weightBytes: number;
  /** Bytes per number in the cache: 2, or 1 for an fp8 cache. */
  readonly kvBytes: number;
}

/** Bytes that one token takes in the cache of one accelerator: keys and values of every layer, the heads shared out. */
export function kvBytesPerToken(model: ModelShape, layout: Layout): number {
  return (2 * model.layers * model.kvHeads * model.headSize * layout.kvBytes) / Math.min(layout.tensorParallel, model.kvHeads);
}
