/** A token is up to this many code points. */
const CODE_POINTS_PER_TOKEN = 4;
const VOCABULARY_SIZE = 50_000;

/** Cuts text into pieces of four code points: crude, but the same text always has the same number of tokens. */
export function tokenize(text: string): readonly number[] {
  const codePoints = Array.from(text);
  const ids: number[] = [];
  for (let start = 0; start < codePoints.length; start += CODE_POINTS_PER_TOKEN) {
    ids.push(hashOf(codePoints.slice(start, start + CODE_POINTS_PER_TOKEN).join('')) % VOCABULARY_SIZE);
  }
  return ids;
}

/** FNV-1a, 32 bits: small, fast, and the same on every machine. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash ^= text.charCodeAt(index);
    hash = Math.imul(hash, 0x01000193) >>> 0;
  }
  return hash;
}
