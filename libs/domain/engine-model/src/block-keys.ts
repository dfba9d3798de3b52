const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const SECOND_OFFSET = 0x9e3779b1;
const SECOND_PRIME = 0x85ebca6b;
const LOW_BITS = 21;
const LOW_RANGE = 2 ** LOW_BITS;

/** What separates caches that hold the same tokens: a salt for each tenant, and the adapter. */
export interface CacheScope {
  readonly salt?: string | undefined;
  readonly adapter?: string | undefined;
}

/** Mixes numbers into a key of 53 bits: two independent 32-bit hashes, of which 21 bits of the second are kept. */
export function mixKeys(...parts: readonly number[]): number {
  let first = FNV_OFFSET;
  let second = SECOND_OFFSET;
  for (const part of parts) {
    for (const word of [part >>> 0, Math.floor(part / 2 ** 32) >>> 0]) {
      first = Math.imul(first ^ word, FNV_PRIME);
      first ^= first >>> 15;
      second = Math.imul(second ^ word, SECOND_PRIME);
      second ^= second >>> 13;
    }
  }
  return (first >>> 0) * LOW_RANGE + ((second >>> 0) % LOW_RANGE);
}

/** A key for a text such as a salt or an adapter's name. */
export function textKey(text: string): number {
  return mixKeys(text.length, ...Array.from(text, (character) => character.codePointAt(0) ?? 0));
}

/** The content key of each full block of `tokens`; a rest that fills no block has none. */
export function contentKeys(tokens: readonly number[], blockTokens: number): number[] {
  return Array.from({ length: Math.floor(tokens.length / blockTokens) }, (_, block) => mixKeys(...tokens.slice(block * blockTokens, (block + 1) * blockTokens)));
}

/**
 * Turns content keys into chained keys: each stands for its block and all before it. The scope enters at the root, so that
 * nothing is shared between two salts or two adapters.
 */
export function chainKeys(contents: readonly number[], scope: CacheScope): number[] {
  let parent = mixKeys(scope.salt === undefined ? 0 : textKey(scope.salt), scope.adapter === undefined ? 0 : textKey(scope.adapter));
  return contents.map((content) => (parent = mixKeys(parent, content)));
}
