import { expect, test } from '@jest/globals';
import { supersedesUsage } from './supersedes-usage.js';

test.each([
  ['completed', 'aborted', true],
  ['completed', 'interrupted', true],
  ['completed', 'completed', false],
  ['aborted', 'completed', false],
  ['failed', 'aborted', false],
] as const)('a %s record after a %s one: replaces it? %s', (later, earlier, expected) => {
  expect(supersedesUsage({ status: later }, { status: earlier })).toBe(expected);
});
