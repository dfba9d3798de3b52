import type { CacheListener } from './block-pool.js';
import type { StepTime } from './step-time.js';

/** Settings of one engine. Names follow what they mean; the flag of vLLM with the same meaning stands behind each. */
export interface EngineParams {
  /** Tokens in one block of the key-value cache (`--block-size`). */
  readonly blockTokens: number;
  /** Blocks in the whole cache (`num_gpu_blocks`). */
  readonly kvBlocks: number;
  /** Tokens that one step computes at most, over all sequences (`--max-num-batched-tokens`); longer prompts come in chunks. */
  readonly batchTokensMax: number;
  /** Sequences that run at once (`--max-num-seqs`). */
  readonly sequencesMax: number;
  /** Sequences that wait at most; one more is refused. */
  readonly waitingMax: number;
  /** Prompt and answer of one sequence together (`--max-model-len`). */
  readonly modelTokensMax: number;
  /** Whether blocks are found again by their content (`--enable-prefix-caching`). */
  readonly prefixCaching: boolean;
  /** Whether a sequence starts only when its whole prompt has room, not just its first chunk. */
  readonly reserveWholePrompt: boolean;
  /** Steps that are planned while the one before still runs (`--async-scheduling` is 1): hides the scheduler, adds a step to TTFT. */
  readonly stepsAhead: 0 | 1;
  /** Adapters that are on the accelerator at once (`--max-loras`); 0 takes no adapter. */
  readonly adapterSlots: number;
  /** Time that a step takes longer when it brings an adapter onto the accelerator, in milliseconds. */
  readonly adapterLoadMs: number;
  /** A full cache either throws the youngest sequence back into the queue, or ends the engine as a CUDA out-of-memory error does. */
  readonly whenCacheIsFull: 'preempt' | 'out-of-memory';
  readonly stepTime: StepTime;
  /** Relative standard deviation of a step's duration; 0 for none. */
  readonly jitter: number;
  /** What the jitter is drawn from: the same seed and the same calls give the same run. */
  readonly seed: number;
  /** Hears which blocks enter and leave the prefix cache (`--kv-events-config`). */
  readonly onCacheChange?: CacheListener;
}

/** vLLM's defaults where it has one. */
export const engineDefaults = {
  blockTokens: 16,
  batchTokensMax: 2_048,
  sequencesMax: 256,
  waitingMax: 100_000,
  modelTokensMax: 8_192,
  prefixCaching: true,
  reserveWholePrompt: true,
  stepsAhead: 1,
  adapterSlots: 0,
  adapterLoadMs: 0,
  whenCacheIsFull: 'preempt',
  jitter: 0,
  seed: 1,
} as const satisfies Omit<EngineParams, 'kvBlocks' | 'stepTime'>;

export class EngineParamsError extends RangeError {
  override readonly name = 'EngineParamsError';
}

/** Throws {@link EngineParamsError}, which names the field, its value and what it may be. */
export function checkEngineParams(params: EngineParams): void {
  const whole = (field: keyof EngineParams, min: number): void => {
    const value = params[field];
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) throw new EngineParamsError(`${field} is ${String(value)}: give a whole number of at least ${min}.`);
  };
  for (const field of ['blockTokens', 'kvBlocks', 'batchTokensMax', 'sequencesMax', 'waitingMax', 'modelTokensMax'] as const) whole(field, 1);
  whole('adapterSlots', 0);
  if (!(params.jitter >= 0 && params.jitter < 1)) throw new EngineParamsError(`jitter is ${params.jitter}: give a share from 0 to below 1.`);
  if (!(params.adapterLoadMs >= 0)) throw new EngineParamsError(`adapterLoadMs is ${params.adapterLoadMs}: give milliseconds from 0 up.`);
  const cacheTokens = params.kvBlocks * params.blockTokens;
  if (cacheTokens < params.modelTokensMax) {
    throw new EngineParamsError(`The cache holds ${cacheTokens} tokens and one sequence may have ${params.modelTokensMax} (modelTokensMax): lower modelTokensMax or raise kvBlocks.`);
  }
}
