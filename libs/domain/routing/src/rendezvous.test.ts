import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ownerOf } from './rendezvous.js';

const keys = Array.from({ length: 300 }, (_, index) => `ep_${index}`);
const members = fc.uniqueArray(fc.stringMatching(/^inst_[0-9a-f]{8}$/), { minLength: 1, maxLength: 6 });

describe('ownerOf', () => {
  test('names nobody without members', () => {
    expect(ownerOf('ep_1', [])).toBeUndefined();
  });

  test('does not depend on the order of the members', () => {
    fc.assert(fc.property(members, (ids) => {
      for (const key of keys.slice(0, 20)) expect(ownerOf(key, ids)).toBe(ownerOf(key, [...ids].reverse()));
    }));
  });

  test('a member that leaves moves only its own keys', () => {
    fc.assert(fc.property(members.filter((ids) => ids.length > 1), (ids) => {
      const rest = ids.slice(1);
      for (const key of keys.slice(0, 50)) {
        const before = ownerOf(key, ids);
        if (before !== ids[0]) expect(ownerOf(key, rest)).toBe(before);
      }
    }));
  });

  test('spreads keys over the members', () => {
    const counts = new Map<string | undefined, number>();
    for (const key of keys) {
      const owner = ownerOf(key, ['inst_1', 'inst_2', 'inst_3']);
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    expect(counts.size).toBe(3);
    for (const count of counts.values()) expect(count).toBeGreaterThan(60);
  });
});
