import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isoTime } from './iso-time.js';

test('is what Date writes, in any order of times', () => {
  fc.assert(fc.property(fc.array(fc.double({ min: -8.64e15, max: 8.64e15, noNaN: true })), (times) => {
    for (const time of times) expect(isoTime(time)).toBe(new Date(time).toISOString());
  }));
});

test('throws for what is no time', () => {
  expect(() => isoTime(Number.NaN)).toThrow(RangeError);
});
