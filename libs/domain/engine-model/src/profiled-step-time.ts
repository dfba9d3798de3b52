import { onCurve, onGrid, type Curve, type Grid } from './interpolate.js';
import type { StepTime } from './step-time.js';

/** Measured times of a model's layers on one accelerator, in microseconds, and what the host adds. */
export interface LayerProfile {
  readonly layers: number;
  /** Everything in one layer that costs by the number of tokens: norms, projections, activations. By tokens in the step. */
  readonly layerUs: Curve;
  /** What is there once for a step and costs by tokens: embedding, last norm. */
  readonly onceUs: Curve;
  /** Output head and sampler, by sequences that produce a token. */
  readonly perSequenceUs: Curve;
  /** Attention of one layer when every sequence decodes: by sequences and their mean context. */
  readonly decodeUs: Grid;
  /** Attention of one layer for one chunk of a prompt: by tokens and by those in the cache before. */
  readonly prefillUs: Grid;
  /** What decoding costs in the attention of one layer in a step that also computes prompts: by sequences and mean context. */
  readonly mixedDecodeUs: Grid;
  readonly host: HostCosts;
}

/** What a step takes besides the layers. */
export interface HostCosts {
  /** Steps in which every sequence decodes, in milliseconds, by sequences: planning, launching, contexts of unequal length. */
  readonly decodeStepMs: Curve;
  /** Steps that compute prompts as well, in milliseconds: these are launched kernel by kernel. */
  readonly mixedStepMs: number;
  /** Summing the parts of a layer over the accelerators that share it, for each of the two sums, in microseconds, by tokens. */
  readonly allReduceUs: Curve;
}

export const noHostCosts: HostCosts = { decodeStepMs: { at: [0], value: [0] }, mixedStepMs: 0, allReduceUs: { at: [0], value: [0] } };

const SUMS_PER_LAYER = 2;

/**
 * Step time out of a layer profile: the sum of what the layers took when they were measured alone, and the host's part. Steps in
 * which every sequence decodes run another attention kernel than mixed ones, so both have their own table.
 */
export function profiledStepTime(profile: LayerProfile): StepTime {
  const { layers, host } = profile;
  return ({ prefills, decodeContexts }) => {
    const decodes = decodeContexts.length;
    const tokens = decodes + prefills.reduce((sum, chunk) => sum + chunk.tokens, 0);
    const meanContext = decodes === 0 ? 0 : decodeContexts.reduce((sum, context) => sum + context, 0) / decodes;
    const decodeTable = prefills.length === 0 ? profile.decodeUs : profile.mixedDecodeUs;
    const attentionUs = (decodes === 0 ? 0 : onGrid(decodeTable, [decodes, meanContext]))
      + prefills.reduce((sum, chunk) => sum + onGrid(profile.prefillUs, [chunk.tokens, chunk.cachedTokens]), 0);
    const layerUs = onCurve(profile.layerUs, tokens) + attentionUs + SUMS_PER_LAYER * onCurve(host.allReduceUs, tokens);
    const hostMs = prefills.length === 0 ? onCurve(host.decodeStepMs, decodes) : host.mixedStepMs;
    return (layers * layerUs + onCurve(profile.onceUs, tokens) + onCurve(profile.perSequenceUs, decodes + prefills.length)) / 1e3 + hostMs;
  };
}
