/** What routing knows of a prompt: how long it is, which beginnings it shares with others, and whose conversation it belongs to. */
export interface PromptTrail {
  /** Tokens of the whole prompt, estimated. */
  readonly tokens: number;
  /** One key for each full block: it stands for the block and all before it. At most {@link PROMPT_BLOCKS_MAX}. */
  readonly blocks: readonly number[];
  /** The key of the conversation or user that named itself; null when nobody did. */
  readonly session: number | null;
}

/** Keys of one prompt; what comes behind them is not looked at. */
export const PROMPT_BLOCKS_MAX = 256;
/** Characters of each of the first blocks, a multiple of four. */
export const BLOCK_CHARACTERS = 512;
/** After so many blocks they become twice as long, so that a long prompt needs few keys and a short one fine ones. */
const BLOCKS_OF_ONE_LENGTH = 64;
/** As estimates for admission count them. */
const CHARACTERS_PER_TOKEN = 4;
/** A key has 53 bits: all 32 of one hash, and these of another. */
const SECOND_BITS = 21;

/** Part of a text, from `start` up to and without `end`. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** Characters behind these are in no block. */
export const HASHED_CHARACTERS_MAX = 4 * textTokensIn(PROMPT_BLOCKS_MAX);

/** Tokens in the first `count` blocks of a text. */
export function textTokensIn(count: number): number {
  const doublings = Math.floor(count / BLOCKS_OF_ONE_LENGTH);
  const blocks = BLOCKS_OF_ONE_LENGTH * (2 ** doublings - 1) + (count - doublings * BLOCKS_OF_ONE_LENGTH) * 2 ** doublings;
  return (blocks * BLOCK_CHARACTERS) / CHARACTERS_PER_TOKEN;
}

/**
 * Two hashes over the same characters, which go on from block to block. FNV-1a with two primes over four UTF-16 units at a time, and the
 * finaliser of MurmurHash3 for each key. Cheap rather than strong: what a collision costs is a replica without the prefix.
 */
class RunningHash {
  private first = 0x811c9dc5;
  private second = 0x9e3779b1;

  add(text: string, start: number, end: number): void {
    let [first, second] = [this.first, this.second];
    let index = start;
    for (; index + 3 < end; index += 4) {
      // Units of more than eight bits overlap, which the multiplications spread out again.
      const four = text.charCodeAt(index) ^ (text.charCodeAt(index + 1) << 8) ^ (text.charCodeAt(index + 2) << 16) ^ (text.charCodeAt(index + 3) << 24);
      first = Math.imul(first ^ four, 0x01000193);
      first ^= first >>> 15;
      second = Math.imul(second ^ four, 0x85ebca6b);
      second ^= second >>> 13;
    }
    for (; index < end; index += 1) {
      first = Math.imul(first ^ text.charCodeAt(index), 0x01000193);
      second = Math.imul(second ^ text.charCodeAt(index), 0x85ebca6b);
    }
    this.first = first;
    this.second = second;
  }

  /** The same as `add` for the text whose bytes these are, at a quarter of the cost; `start` and `end` are multiples of four from each other. */
  addBytes(bytes: DataView, start: number, end: number): void {
    let [first, second] = [this.first, this.second];
    for (let index = start; index < end; index += 4) {
      const four = bytes.getInt32(index, true);
      first = Math.imul(first ^ four, 0x01000193);
      first ^= first >>> 15;
      second = Math.imul(second ^ four, 0x85ebca6b);
      second ^= second >>> 13;
    }
    this.first = first;
    this.second = second;
  }

  key(): number {
    return finalise(this.first) * 2 ** SECOND_BITS + (finalise(this.second) >>> (32 - SECOND_BITS));
  }
}

function finalise(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/**
 * The chained keys of the full blocks of one part of a text. `salt` is the tenant's and secret: two tenants with the same text
 * share no key, and nobody can aim at the keys of another. `head` comes before the text in the engine's prompt, such as its tools.
 * Nothing is hashed for a text shorter than one block. `bytes` are those of the range, up to {@link HASHED_CHARACTERS_MAX}, where each
 * character has one; the keys are the same with them and without.
 */
export function promptBlocks(salt: string, text: string, range: TextRange, head?: TextRange, bytes?: DataView): readonly number[] {
  if (range.end - range.start < BLOCK_CHARACTERS) return [];
  const hash = new RunningHash();
  hash.add(salt, 0, salt.length);
  if (head !== undefined) hash.add(text, head.start, head.end);
  const keys: number[] = [];
  let start = range.start;
  for (let length = BLOCK_CHARACTERS; keys.length < PROMPT_BLOCKS_MAX; length *= 2) {
    for (let count = 0; count < BLOCKS_OF_ONE_LENGTH && keys.length < PROMPT_BLOCKS_MAX; count += 1) {
      if (start + length > range.end) return keys;
      if (bytes === undefined) hash.add(text, start, start + length);
      else hash.addBytes(bytes, start - range.start, start - range.start + length);
      keys.push(hash.key());
      start += length;
    }
  }
  return keys;
}

/** One key for a whole text under a salt, such as the name of a session. */
export function textKey(salt: string, text: string): number {
  const hash = new RunningHash();
  hash.add(salt, 0, salt.length);
  hash.add(text, 0, text.length);
  return hash.key();
}
