/** Blocks that are believed to be in one replica's cache, at most. */
export const BLOCKS_PER_REPLICA_MAX = 16_384;

/** A value of a block has its tokens in the lower part and the mark of its last use above: less memory than an object for each. */
const TOKENS_SPAN = 2 ** 20;

/**
 * What one replica's prefix cache is believed to hold: the blocks of the prompts it was sent, the one used longest ago forgotten
 * first. A block is never younger than those before it in its prompt, so of each prompt a beginning is there, and it is found by halving.
 */
export class CachedPrefixes {
  /** Tokens and mark of each block by its key, the one used longest ago first. */
  private readonly blocks = new Map<number, number>();
  private tokensHeld = 0;
  private uses = 0;

  constructor(private tokensMax: number, private readonly tokensIn: (count: number) => number) {}

  get size(): number {
    return this.blocks.size;
  }

  get tokens(): number {
    return this.tokensHeld;
  }

  /** Tokens of the longest beginning that is there. */
  hitTokens(keys: readonly number[]): number {
    return this.tokensIn(this.hitBlocks(keys));
  }

  /** When the last block of that beginning was used: the mark for {@link forgetUpTo}. Undefined where there is none. */
  hitMark(keys: readonly number[]): number | undefined {
    const value = this.blocks.get(keys[this.hitBlocks(keys) - 1] ?? -1);
    return value === undefined ? undefined : Math.floor(value / TOKENS_SPAN);
  }

  private hitBlocks(keys: readonly number[]): number {
    let low = 0;
    let high = keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.blocks.has(keys[middle] ?? -1)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The replica was sent a prompt of these blocks. */
  touch(keys: readonly number[]): void {
    this.uses += 1;
    // The last one first, so that beginnings, which others share, are the youngest.
    for (let index = keys.length - 1; index >= 0; index -= 1) {
      const key = keys[index] ?? -1;
      const tokens = this.tokensIn(index + 1) - this.tokensIn(index);
      if (!this.blocks.delete(key)) this.tokensHeld += tokens;
      this.blocks.set(key, this.uses * TOKENS_SPAN + tokens);
    }
    this.trim(this.tokensMax);
  }

  /** The replica's cache has room for so many tokens, it turned out. */
  limit(tokensMax: number): void {
    this.tokensMax = tokensMax;
    this.trim(tokensMax);
  }

  /** The replica holds no more than so many tokens: what is beyond them was forgotten by it. */
  trim(tokens: number): void {
    for (const [key, value] of this.blocks) {
      if (this.tokensHeld <= tokens && this.blocks.size <= BLOCKS_PER_REPLICA_MAX) return;
      this.drop(key, value);
    }
  }

  /** Forgets what was not used after the mark. */
  forgetUpTo(mark: number): void {
    for (const [key, value] of this.blocks) {
      if (value >= (mark + 1) * TOKENS_SPAN) return;
      this.drop(key, value);
    }
  }

  /** Forgets these blocks, whenever they were used. */
  forget(keys: readonly number[]): void {
    for (const key of keys) {
      const value = this.blocks.get(key);
      if (value !== undefined) this.drop(key, value);
    }
  }

  private drop(key: number, value: number): void {
    this.blocks.delete(key);
    this.tokensHeld -= value % TOKENS_SPAN;
  }

  clear(): void {
    this.blocks.clear();
    this.tokensHeld = 0;
  }
}
