import { describe, expect, test } from '@jest/globals';
import { HmacKeyMinter } from './hmac-key-minter.js';

describe('HmacKeyMinter', () => {
  const minter = new HmacKeyMinter('a pepper of this installation');

  test('mints keys of 256 random bits and finds them again by their HMAC', () => {
    const minted = minter.mint();
    expect(minted.key).toMatch(/^sk-ps-[A-Za-z0-9_-]{43}$/);
    expect(minted.hmac).toMatch(/^[0-9a-f]{64}$/);
    expect(minter.hmac(minted.key)).toBe(minted.hmac);
    expect([minted.prefix, minted.lastFour]).toEqual([minted.key.slice(0, 10), minted.key.slice(-4)]);
    expect(new Set(Array.from({ length: 1_000 }, () => minter.mint().key)).size).toBe(1_000);
  });

  test('an HMAC is no key, and another pepper knows no key of ours', () => {
    const minted = minter.mint();
    expect(minter.hmac(minted.hmac)).not.toBe(minted.hmac);
    expect(new HmacKeyMinter('a pepper of another one').hmac(minted.key)).not.toBe(minted.hmac);
    expect([minter.isSame('secret', 'secret'), minter.isSame('secret', 'secreT'), minter.isSame('', 'secret')]).toEqual([true, false, false]);
    expect(() => new HmacKeyMinter('short')).toThrow(RangeError);
  });

  test('cache salts are the same for one organisation and tell nothing about another', () => {
    expect(minter.cacheSalt('org_1')).toBe(new HmacKeyMinter('a pepper of this installation').cacheSalt('org_1'));
    expect(minter.cacheSalt('org_1')).toMatch(/^[\w-]{43}$/);
    expect(minter.cacheSalt('org_2')).not.toBe(minter.cacheSalt('org_1'));
    expect(new HmacKeyMinter('a pepper of this installation', 'another key for salts').cacheSalt('org_1')).not.toBe(minter.cacheSalt('org_1'));
    expect(minter.cacheSalt('org_1')).not.toBe(minter.hmac('org_1'));
    expect(() => new HmacKeyMinter('a pepper of this installation', 'short')).toThrow(RangeError);
  });
});
