import { describe, expect, test } from '@jest/globals';
import { isAtLeast } from './executable-version.js';

describe('isAtLeast', () => {
  test.each([
    ['2.14.0', '2.14.0', true],
    ['v2.15.1', '2.14.0', true],
    ['2.9.10', '2.14.0', false],
    ['2.14', '2.14.0', true],
    ['3.0.0', '2.14.9', true],
    ['2.13.99', '2.14.0', false],
    ['unknown', '2.14.0', false],
  ])('%s against %s', (version, minimum, expected) => {
    expect(isAtLeast(version, minimum)).toBe(expected);
  });
});
