import { kvBytesPerToken, type AcceleratorShape, type Layout, type ModelShape } from './model-shape.js';
import type { LinearStepTime } from './step-time.js';

/**
 * Seven constants, fitted on eleven real vLLM 0.15 runs on H100 (15 load stages). Median error of a model that the fit left out:
 * TTFT 7.9 %, time between tokens 13.6 %, whole request 7.1 %.
 */
const constants = {
  /** Share of the datasheet's memory bandwidth that reading weights gets. */
  weightBandwidth: 0.9,
  /** And that reading the cache gets. */
  kvBandwidth: 0.527,
  /** Share of the datasheet's arithmetic that prompts get. */
  arithmetic: 0.55,
  stepMs: 0.3,
  layerMs: 0.0112,
  /** One sum over accelerators. */
  allReduceMs: 0.015,
  sequenceUs: 10.6,
} as const;

const SUMS_PER_LAYER = 2;
const BYTES_PER_ACTIVATION = 2;
/** Part of a prompt's sums that does not hide behind arithmetic. */
const EXPOSED = 0.5;

/** Step time of a dense model that nobody has measured on this accelerator, from both datasheets. A roofline with overheads. */
export function datasheetStepTime(model: ModelShape, accelerator: AcceleratorShape, layout: Layout): LinearStepTime {
  const { tensorParallel } = layout;
  const embedding = model.vocabulary * model.hidden;
  const bytesPerMs = accelerator.memoryGBps * 1e6;
  const tflops = layout.weightBytes === 1 ? (accelerator.tflops8 ?? accelerator.tflops16) : accelerator.tflops16;
  const sums = tensorParallel > 1 ? SUMS_PER_LAYER * model.layers : 0;
  const weightsMs = ((model.parameters - embedding) * layout.weightBytes) / tensorParallel / (bytesPerMs * constants.weightBandwidth);
  const arithmeticMs = (2 * (model.parameters - 2 * embedding)) / (tensorParallel * tflops * 1e9 * constants.arithmetic);
  const sumMs = (sums * model.hidden * BYTES_PER_ACTIVATION * 2 * (tensorParallel - 1)) / tensorParallel / (accelerator.linkGBps * 1e6);
  return {
    baseMs: weightsMs + constants.stepMs + model.layers * constants.layerMs + sums * constants.allReduceMs,
    decodeUs: constants.sequenceUs,
    prefillUs: 1e3 * (arithmeticMs + EXPOSED * sumMs),
    contextNs: (1e6 * kvBytesPerToken(model, layout)) / (bytesPerMs * constants.kvBandwidth),
    attentionNs: (1e6 * 2 * 2 * model.layers * model.hidden) / (tensorParallel * accelerator.tflops16 * 1e9 * constants.arithmetic),
  };
}
