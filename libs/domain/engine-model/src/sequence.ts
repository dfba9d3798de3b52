import type { CacheScope } from './block-keys.js';

/** One prompt and the answer to it, as the engine gets it. */
export interface EngineRequest {
  readonly id: string;
  readonly promptTokens: number;
  /** Tokens that are produced at most; an answer that ends earlier by itself is ended with `end`. At least 1. */
  readonly outputTokens: number;
  /** Content of each full block of the prompt, as `contentKeys` makes it. Without it the prompt is like no other. */
  readonly contentKeys?: readonly number[];
  readonly scope?: CacheScope;
}

/** A request inside the engine. */
export interface Sequence {
  readonly id: string;
  /** Counts up over the sequences of one engine. */
  readonly number: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly adapter: string | undefined;
  readonly submittedMs: number;
  /** Chained key of each full block; grows past the prompt as tokens are produced. */
  readonly keys: number[];
  /** Blocks it uses, in the order of its tokens. */
  blocks: number[];
  /** Of these, blocks whose key is known to the pool. */
  rememberedBlocks: number;
  /** Tokens in the cache, those of a planned step included. */
  computedTokens: number;
  /** Tokens produced, those of a planned step included. */
  producedTokens: number;
  /** Prompt tokens that were found in the cache when it first started; undefined before. */
  cachedTokens: number | undefined;
  /** When the step was planned that it first had a share in. */
  startedMs: number | undefined;
  preemptions: number;
  state: 'waiting' | 'running' | 'produced-all' | 'ended';
}

export const totalTokens = (sequence: Sequence): number => sequence.promptTokens + sequence.producedTokens;
