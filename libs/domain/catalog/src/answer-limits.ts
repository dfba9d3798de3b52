import type { EndpointState } from './catalog-state.js';

/** How long the parts of an answer may take, in milliseconds. */
export interface AnswerLimits {
  /** From sending the request to an engine until its first token. */
  readonly firstTokenMs: number;
  /** Between two events of an engine's stream. */
  readonly chunkGapMs: number;
  /** From sending the request to an engine until the end of the answer. */
  readonly totalMs: number;
}

/** A longer limit is none. */
const LIMIT_MS_MAX = 3_600_000;

/** The limits of an endpoint: its engine options `first_token_timeout_ms`, `chunk_gap_timeout_ms` and `total_timeout_ms`; `byDefault` where it has none that is a whole number from 1 to 3,600,000. */
export function answerLimitsOf({ engineOptions }: Pick<EndpointState, 'engineOptions'>, byDefault: AnswerLimits): AnswerLimits {
  const limit = (name: string, otherwiseMs: number): number => {
    const value = engineOptions[name];
    return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= LIMIT_MS_MAX ? value : otherwiseMs;
  };
  return {
    firstTokenMs: limit('first_token_timeout_ms', byDefault.firstTokenMs),
    chunkGapMs: limit('chunk_gap_timeout_ms', byDefault.chunkGapMs),
    totalMs: limit('total_timeout_ms', byDefault.totalMs),
  };
}
