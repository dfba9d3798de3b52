import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { toHalfFloats } from './half-floats.js';

/** The value of a half float, by the definition of IEEE 754. */
function valueOf(half: number): number {
  const [sign, exponent, mantissa] = [half & 0x8000 ? -1 : 1, (half >> 10) & 0x1f, half & 0x3ff];
  if (exponent === 0x1f) return mantissa === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * mantissa * 2 ** -24 : sign * (1 + mantissa / 1_024) * 2 ** (exponent - 15);
}

const halfOf = (value: number): number => toHalfFloats(Float32Array.of(value))[0] ?? NaN;

describe('half floats', () => {
  test.each([[0, 0x0000], [-0, 0x8000], [1, 0x3c00], [-2, 0xc000], [65_504, 0x7bff], [65_520, 0x7c00], [1e9, 0x7c00], [-Infinity, 0xfc00], [2 ** -24, 0x0001], [2 ** -25, 0x0000], [3 * 2 ** -25, 0x0002], [2 ** -14, 0x0400], [1 + 2 ** -11, 0x3c00], [1 + 3 * 2 ** -11, 0x3c02]])('%d is %d', (value, half) => {
    expect(halfOf(value)).toBe(half);
  });

  test('every half float comes back as itself', () => {
    for (let half = 0; half < 0x7c00; half += 1) expect(halfOf(valueOf(half))).toBe(half);
  });

  test('no neighbour is nearer', () => {
    fc.assert(fc.property(fc.float({ min: -60_000, max: 60_000, noNaN: true }), (value) => {
      const half = halfOf(value) & 0x7fff;
      const error = Math.abs(valueOf(half) - Math.abs(value));
      for (const neighbour of [half - 1, half + 1]) if (neighbour >= 0 && neighbour < 0x7c00) expect(Math.abs(valueOf(neighbour) - Math.abs(value))).toBeGreaterThanOrEqual(error);
    }));
  });
});
