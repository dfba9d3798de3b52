/** One piece of a prompt that a step computes. */
export interface PrefillChunk {
  /** Tokens computed now. */
  readonly tokens: number;
  /** Tokens of the same sequence that are in the cache already. */
  readonly cachedTokens: number;
}

/** What one step computes. */
export interface StepLoad {
  readonly prefills: readonly PrefillChunk[];
  /** Tokens in the cache of each sequence that gets one more token. */
  readonly decodeContexts: readonly number[];
}

/** How long a step takes, in milliseconds. Pure. */
export type StepTime = (load: StepLoad) => number;

/**
 * Coefficients of the linear step time, in the units of the data set `engine-params/1`:
 * `baseMs + decodeUs·decodes + prefillUs·prefillTokens + contextNs·Σcontext + attentionNs·Σ chunk·(cached + chunk/2)`.
 */
export interface LinearStepTime {
  readonly baseMs: number;
  /** For each sequence that decodes. */
  readonly decodeUs: number;
  /** For each prompt token. */
  readonly prefillUs: number;
  /** For each token in the cache of a sequence that decodes. */
  readonly contextNs: number;
  /** For each pair of a prompt token and a token it attends to. */
  readonly attentionNs: number;
}

export function linearStepTime(coefficients: LinearStepTime): StepTime {
  const { baseMs, decodeUs, prefillUs, contextNs, attentionNs } = coefficients;
  return ({ prefills, decodeContexts }) => {
    let prefillTokens = 0;
    let attended = 0;
    for (const { tokens, cachedTokens } of prefills) {
      prefillTokens += tokens;
      attended += tokens * (cachedTokens + tokens / 2);
    }
    const context = decodeContexts.reduce((sum, tokens) => sum + tokens, 0);
    return baseMs + (decodeUs * decodeContexts.length + prefillUs * prefillTokens) / 1e3 + (contextNs * context + attentionNs * attended) / 1e6;
  };
}
