/** Hears what enters and leaves the cache, by the chained key of a block's content. */
export type CacheListener = (change: 'stored' | 'removed', key: number) => void;

/** No block: ends the list of free blocks. */
const NONE = -1;

/**
 * The blocks of the key-value cache. A block is in use by one or more sequences or free; a free block keeps its content, and
 * can be found again by its key, until it is taken for something else. The block that was freed longest ago is taken first.
 */
export class BlockPool {
  private readonly uses: Int32Array;
  private readonly keys: Float64Array;
  private readonly before: Int32Array;
  private readonly after: Int32Array;
  private readonly byKey = new Map<number, number>();
  private oldest = NONE;
  private newest = NONE;
  private free = 0;

  /** `onChange` hears of every key that begins or ceases to find a block. */
  constructor(readonly size: number, private readonly onChange?: CacheListener) {
    this.uses = new Int32Array(size);
    this.keys = new Float64Array(size).fill(NONE);
    this.before = new Int32Array(size).fill(NONE);
    this.after = new Int32Array(size).fill(NONE);
    for (let block = 0; block < size; block += 1) this.putFree(block);
  }

  /** Blocks that are found by a key. */
  get cachedCount(): number {
    return this.byKey.size;
  }

  get freeCount(): number {
    return this.free;
  }

  get usedCount(): number {
    return this.size - this.free;
  }

  /** The cached blocks of the longest run of `keys` from the first on, at most `blocksMax`. Takes nothing. */
  find(keys: readonly number[], blocksMax: number): number[] {
    const found: number[] = [];
    for (const key of keys) {
      const block = found.length < blocksMax ? this.byKey.get(key) : undefined;
      if (block === undefined) break;
      found.push(block);
    }
    return found;
  }

  /** How many of these blocks are free, and would therefore count against the room for others once they are used. */
  freeAmong(blocks: readonly number[]): number {
    return blocks.reduce((sum, block) => sum + (this.uses[block] === 0 ? 1 : 0), 0);
  }

  /** One more sequence uses these blocks. */
  use(blocks: readonly number[]): void {
    for (const block of blocks) {
      if (this.uses[block] === 0) this.takeFree(block);
      this.uses[block] = (this.uses[block] ?? 0) + 1;
    }
  }

  /** Takes free blocks for new content. Undefined, and nothing is taken, when there are not enough. */
  take(count: number): number[] | undefined {
    if (count > this.free) return undefined;
    return Array.from({ length: count }, () => {
      const block = this.oldest;
      this.takeFree(block);
      this.forget(block);
      this.uses[block] = 1;
      return block;
    });
  }

  /** From now on `key` finds this block. A key that finds another block already stays with that one. */
  remember(block: number, key: number): void {
    if (this.byKey.has(key)) return;
    this.forget(block);
    this.byKey.set(key, block);
    this.onChange?.('stored', key);
    this.keys[block] = key;
  }

  /** A sequence lets go of its blocks. Its last block becomes free first, so that beginnings, which others share, live longest. */
  release(blocks: readonly number[]): void {
    for (let index = blocks.length - 1; index >= 0; index -= 1) {
      const block = blocks[index] ?? NONE;
      const uses = (this.uses[block] ?? 0) - 1;
      this.uses[block] = uses;
      if (uses === 0) this.putFree(block);
    }
  }

  private forget(block: number): void {
    const key = this.keys[block] ?? NONE;
    if (key === NONE) return;
    this.byKey.delete(key);
    this.onChange?.('removed', key);
    this.keys[block] = NONE;
  }

  private putFree(block: number): void {
    this.before[block] = this.newest;
    this.after[block] = NONE;
    if (this.newest === NONE) this.oldest = block;
    else this.after[this.newest] = block;
    this.newest = block;
    this.free += 1;
  }

  private takeFree(block: number): void {
    const before = this.before[block] ?? NONE;
    const after = this.after[block] ?? NONE;
    if (before === NONE) this.oldest = after;
    else this.after[before] = after;
    if (after === NONE) this.newest = before;
    else this.before[after] = before;
    this.free -= 1;
  }
}
