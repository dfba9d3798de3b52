import { AdapterSlots } from './adapter-slots.js';
import { mixKeys } from './block-keys.js';
import { BlockPool } from './block-pool.js';
import type { EngineParams } from './engine-params.js';
import { totalTokens, type Sequence } from './sequence.js';
import type { StepLoad } from './step-time.js';
import { WaitingQueue } from './waiting-queue.js';

/** What one sequence computes in one step. */
export interface Share {
  readonly sequence: Sequence;
  readonly tokens: number;
  /** Its tokens in the cache before the step. */
  readonly contextTokens: number;
  /** Whether the step ends with one more token of the answer. */
  readonly produces: boolean;
  readonly isFirstToken: boolean;
  readonly isLastToken: boolean;
}

export interface StepPlan {
  readonly shares: readonly Share[];
  readonly preempted: readonly Sequence[];
  readonly adaptersLoaded: number;
}

/** The cache has no room for a running sequence, and the engine is set to die of it. */
export class OutOfMemory extends Error {
  override readonly name = 'OutOfMemory';
}

/**
 * Decides what the next step computes, in the order of vLLM's scheduler (version 1): running sequences first, in order of their
 * start, each with one token or the next chunk of its prompt; then waiting ones, while tokens, slots and blocks last. A running
 * sequence that finds no block throws the youngest back into the queue, and its tokens are computed again later.
 */
export class StepPlanner {
  readonly pool: BlockPool;
  readonly waiting = new WaitingQueue();
  readonly adapters: AdapterSlots;
  running: Sequence[] = [];
  prefixQueriedTokens = 0;
  prefixHitTokens = 0;
  preemptions = 0;

  constructor(private readonly params: EngineParams) {
    this.pool = new BlockPool(params.kvBlocks, params.onCacheChange);
    this.adapters = new AdapterSlots(params.adapterSlots);
  }

  /** Throws {@link OutOfMemory} where the parameters ask for it. */
  plan(nowMs: number): StepPlan {
    const draft = new Draft(this.params.batchTokensMax, nowMs);
    this.planRunning(draft);
    if (draft.preempted.length === 0) this.planWaiting(draft);
    return draft;
  }

  /** Gives back blocks, slot and adapter of a running sequence. */
  leave(sequence: Sequence): void {
    this.running = this.running.filter((other) => other !== sequence);
    this.letGo(sequence);
  }

  private planRunning(draft: Draft): void {
    for (let index = 0; index < this.running.length && draft.room > 0; index += 1) {
      const sequence = this.running[index];
      if (sequence === undefined || sequence.state !== 'running') continue;
      const tokens = Math.min(totalTokens(sequence) - sequence.computedTokens, draft.room);
      if (!this.makeRoom(sequence, tokens, draft)) return;
      draft.add(sequence, tokens);
      this.rememberFullBlocks(sequence);
    }
  }

  /** False when the sequence itself had to go back into the queue. */
  private makeRoom(sequence: Sequence, tokens: number, draft: Draft): boolean {
    while (!this.grow(sequence, tokens)) {
      if (this.params.whenCacheIsFull === 'out-of-memory') throw new OutOfMemory(`The cache of ${this.pool.size} blocks is full.`);
      const victim = this.running.findLast((other) => other.state === 'running') ?? sequence;
      this.preempt(victim, draft);
      if (victim === sequence) return false;
    }
    return true;
  }

  private preempt(sequence: Sequence, draft: Draft): void {
    this.leave(sequence);
    sequence.computedTokens = 0;
    sequence.preemptions += 1;
    sequence.state = 'waiting';
    this.preemptions += 1;
    this.waiting.putBack(sequence);
    draft.preempted.push(sequence);
  }

  private planWaiting(draft: Draft): void {
    const skipped: Sequence[] = [];
    while (draft.room > 0 && this.running.length < this.params.sequencesMax) {
      const sequence = this.waiting.next();
      if (sequence === undefined) break;
      if (sequence.adapter !== undefined && !this.adapters.hasRoom(sequence.adapter)) {
        this.waiting.take();
        skipped.push(sequence);
        continue;
      }
      if (!this.start(sequence, draft)) break;
    }
    for (const sequence of skipped.reverse()) this.waiting.putBack(sequence);
  }

  /** Moves a waiting sequence into the step; false when there are not enough blocks. */
  private start(sequence: Sequence, draft: Draft): boolean {
    const { blockTokens, reserveWholePrompt } = this.params;
    const total = totalTokens(sequence);
    // The last token is always computed: its output is what the next token comes from.
    const found = this.params.prefixCaching ? this.pool.find(this.keysOf(sequence, total - 1), Math.floor((total - 1) / blockTokens)) : [];
    const hitTokens = found.length * blockTokens;
    const tokens = Math.min(total - hitTokens, draft.room);
    const wanted = Math.ceil((reserveWholePrompt ? total : hitTokens + tokens) / blockTokens) - found.length;
    if (wanted > this.pool.freeCount - this.pool.freeAmong(found)) return false;
    this.waiting.take();
    this.pool.use(found);
    sequence.blocks = found;
    sequence.rememberedBlocks = found.length;
    sequence.computedTokens = hitTokens;
    sequence.state = 'running';
    sequence.startedMs ??= draft.nowMs;
    if (sequence.cachedTokens === undefined) this.countHits(sequence, hitTokens);
    if (sequence.adapter !== undefined && this.adapters.enter(sequence.adapter) === 'loaded') draft.adaptersLoaded += 1;
    this.grow(sequence, tokens);
    this.running.push(sequence);
    draft.add(sequence, tokens);
    this.rememberFullBlocks(sequence);
    return true;
  }

  private countHits(sequence: Sequence, hitTokens: number): void {
    sequence.cachedTokens = hitTokens;
    if (!this.params.prefixCaching) return;
    this.prefixQueriedTokens += sequence.promptTokens;
    this.prefixHitTokens += hitTokens;
  }

  /** Takes the blocks that `tokens` more tokens need. */
  private grow(sequence: Sequence, tokens: number): boolean {
    const wanted = Math.ceil((sequence.computedTokens + tokens) / this.params.blockTokens) - sequence.blocks.length;
    if (wanted <= 0) return true;
    const taken = this.pool.take(wanted);
    if (taken === undefined) return false;
    sequence.blocks.push(...taken);
    return true;
  }

  private rememberFullBlocks(sequence: Sequence): void {
    if (!this.params.prefixCaching) return;
    const full = Math.floor(sequence.computedTokens / this.params.blockTokens);
    if (full <= sequence.rememberedBlocks) return;
    const keys = this.keysOf(sequence, sequence.computedTokens);
    for (let index = sequence.rememberedBlocks; index < full; index += 1) this.pool.remember(sequence.blocks[index] ?? 0, keys[index] ?? 0);
    sequence.rememberedBlocks = full;
  }

  /** Blocks past those whose content is known get keys of their own: only the same sequence, thrown back, finds them again. */
  private keysOf(sequence: Sequence, tokens: number): readonly number[] {
    const { keys } = sequence;
    const wanted = Math.floor(tokens / this.params.blockTokens);
    while (keys.length < wanted) keys.push(mixKeys(keys.at(-1) ?? 0, sequence.number, keys.length));
    return keys;
  }

  private letGo(sequence: Sequence): void {
    this.pool.release(sequence.blocks);
    sequence.blocks = [];
    sequence.rememberedBlocks = 0;
    if (sequence.adapter !== undefined) this.adapters.leave(sequence.adapter);
  }
}

/** A plan while it is made. Adding a share already counts its tokens, so that a step ahead builds on it. */
class Draft implements StepPlan {
  readonly shares: Share[] = [];
  readonly preempted: Sequence[] = [];
  adaptersLoaded = 0;

  constructor(public room: number, readonly nowMs: number) {}

  add(sequence: Sequence, tokens: number): void {
    const contextTokens = sequence.computedTokens;
    sequence.computedTokens += tokens;
    this.room -= tokens;
    const produces = sequence.computedTokens === totalTokens(sequence);
    const isFirstToken = produces && sequence.producedTokens === 0;
    if (produces) sequence.producedTokens += 1;
    const isLastToken = produces && sequence.producedTokens >= sequence.outputTokens;
    if (isLastToken) sequence.state = 'produced-all';
    this.shares.push({ sequence, tokens, contextTokens, produces, isFirstToken, isLastToken });
  }
}

/** A share with one token after the first of its answer decodes; everything else computes a piece of a prompt. */
export function loadOf(shares: readonly Share[]): StepLoad {
  const isDecode = (share: Share): boolean => share.tokens === 1 && share.produces && !share.isFirstToken;
  return {
    prefills: shares.filter((share) => !isDecode(share)).map((share) => ({ tokens: share.tokens, cachedTokens: share.contextTokens })),
    decodeContexts: shares.filter(isDecode).map((share) => share.contextTokens),
  };
}
