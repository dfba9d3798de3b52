import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BLOCK_CHARACTERS, promptBlocks, PROMPT_BLOCKS_MAX, textKey, textTokensIn } from './prompt-trail.js';

const whole = (text: string) => ({ start: 0, end: text.length });
const blocksOf = (text: string, salt = 'salt') => promptBlocks(salt, text, whole(text));
const letters = (length: number, seed: number): string => Array.from({ length }, (_, index) => String.fromCharCode(97 + ((index * 31 + seed * (index % 97)) % 26))).join('');

describe('the blocks of a prompt', () => {
  test('a text shorter than a block has none, and no text has more than the limit', () => {
    expect(blocksOf(letters(BLOCK_CHARACTERS - 1, 1))).toEqual([]);
    expect(blocksOf(letters(BLOCK_CHARACTERS, 1))).toHaveLength(1);
    expect(blocksOf(letters(3_000_000, 1))).toHaveLength(PROMPT_BLOCKS_MAX);
  });

  test('blocks grow with their distance from the beginning, and their tokens add up to the text', () => {
    expect(textTokensIn(0)).toBe(0);
    expect(textTokensIn(64)).toBe((64 * BLOCK_CHARACTERS) / 4);
    expect(textTokensIn(66)).toBe((64 * BLOCK_CHARACTERS + 2 * 2 * BLOCK_CHARACTERS) / 4);
    expect(blocksOf(letters(64 * BLOCK_CHARACTERS + 2 * BLOCK_CHARACTERS, 1))).toHaveLength(65);
  });

  test('only the part of the text that is the prompt counts, after its head', () => {
    const prompt = letters(1_200, 3);
    const body = `{"model":"m","tools":[1],"messages":${prompt}}`;
    const start = body.indexOf(prompt);
    const range = { start, end: start + prompt.length };
    expect(promptBlocks('salt', body, range)).toEqual(blocksOf(prompt));
    expect(promptBlocks('salt', body, range, { start: body.indexOf('[1]'), end: body.indexOf('[1]') + 3 })[0]).not.toBe(blocksOf(prompt)[0]);
  });

  test('property: two prompts share exactly the blocks of their common beginning', () => {
    fc.assert(fc.property(fc.nat(4_000), fc.nat(2_000), fc.nat(2_000), (shared, left, right) => {
      const beginning = letters(shared, 5);
      const [one, other] = [blocksOf(`${beginning}L${letters(left, 7)}`), blocksOf(`${beginning}R${letters(right, 11)}`)];
      const common = one.findIndex((key, index) => key !== other[index]);
      const expected = Math.min(Math.floor(shared / BLOCK_CHARACTERS), one.length, other.length);
      expect(common === -1 ? Math.min(one.length, other.length) : common).toBe(expected);
    }));
  });

  test('property: the keys of a text and of its bytes are the same', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary-ascii', maxLength: 3_000 }), fc.nat(50), fc.nat(400), (text, start, repeat) => {
      const long = text.repeat(1 + repeat);
      const range = { start: Math.min(start, long.length), end: long.length };
      const bytes = new DataView(Uint8Array.from(long.slice(range.start), (character) => character.charCodeAt(0)).buffer);
      expect(promptBlocks('salt', long, range, undefined, bytes)).toEqual(promptBlocks('salt', long, range));
    }), { numRuns: 50 });
  });

  test('property: two tenants share no key, whatever they send', () => {
    fc.assert(fc.property(fc.string({ minLength: 16, maxLength: 64 }), fc.string({ minLength: 16, maxLength: 64 }), fc.nat(100), (one, other, seed) => {
      fc.pre(one !== other);
      const text = letters(6_000, seed);
      const keys = new Set(blocksOf(text, one));
      expect(blocksOf(text, other).some((key) => keys.has(key))).toBe(false);
      expect(textKey(one, 'session')).not.toBe(textKey(other, 'session'));
    }));
  });

  test('keys are whole numbers that JSON carries', () => {
    for (const key of blocksOf(letters(200_000, 9))) expect(Number.isSafeInteger(key) && key >= 0).toBe(true);
  });
});
