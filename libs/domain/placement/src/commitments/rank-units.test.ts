import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { mayPreempt } from './may-preempt.js';
import { rankUnits, type EndpointClaim } from './rank-units.js';

const TOTAL = [1_000, 1_000];
const claim = (endpointId: string, part: Partial<EndpointClaim> = {}): EndpointClaim => ({ endpointId, tenantId: 'everybody', weight: 4, floor: 0, floorPriority: 0, use: [100, 50], count: 0, wanted: 1, ...part });

/** The order in which everything is given. */
function order(claims: readonly EndpointClaim[]): readonly string[] {
  const ranking = rankUnits(claims, TOTAL);
  const names: string[] = [];
  for (let unit = ranking.next(); unit !== undefined; unit = ranking.next()) {
    const { endpointId, ordinal, isPromised } = unit;
    names.push(`${endpointId}${ordinal}${isPromised ? '!' : ''}`);
    const given = claims.find((one) => one.endpointId === endpointId);
    if (given !== undefined && !isPromised) ranking.account(given, 1);
  }
  return names;
}

describe('the order in which replicas are placed', () => {
  test('promised ones first, by priority; then first ones, then the larger', () => {
    expect(order([claim('a', { wanted: 2 }), claim('b', { wanted: 2, use: [200, 50] }), claim('c', { wanted: 3, floor: 2, floorPriority: 100 }), claim('d', { floor: 1, floorPriority: 900 })])).toEqual(['d0!', 'c0!', 'c1!', 'b0', 'a0', 'b1', 'a1', 'c2']);
  });

  test('between tenants it goes by weighted shares, and what is promised counts to nobody', () => {
    const light = claim('l', { tenantId: 'light', weight: 1, wanted: 4 });
    const heavy = claim('h', { tenantId: 'heavy', weight: 4, wanted: 4 });
    expect(order([light, heavy]).slice(0, 5)).toEqual(['h0', 'l0', 'h1', 'h2', 'h3']);
    const holding = claim('p', { tenantId: 'light', weight: 1, count: 5, wanted: 6, floor: 5 });
    expect(order([holding, claim('q', { tenantId: 'other', weight: 1, count: 1, wanted: 2 })])).toEqual(['p5', 'q1']);
  });

  test('every missing replica is in the order once, whatever is claimed', () => {
    const claims = fc.array(fc.record({ tenantId: fc.constantFrom('x', 'y', 'z'), weight: fc.constantFrom(0.5, 1, 4, 8), floor: fc.integer({ min: 0, max: 4 }), floorPriority: fc.integer({ min: 0, max: 9 }), use: fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 400 })), count: fc.integer({ min: 0, max: 4 }), wanted: fc.integer({ min: 0, max: 6 }) }), { maxLength: 10 });
    fc.assert(fc.property(claims, (all) => {
      const named = all.map((one, index) => ({ ...one, endpointId: `e${index}` }));
      const units = order(named);
      expect(new Set(units).size).toBe(units.length);
      expect(units).toHaveLength(named.reduce((sum, { wanted, count }) => sum + Math.max(0, wanted - count), 0));
    }));
  });
});

describe('who may be preempted', () => {
  test('a promise takes from anybody; others only from those that stay richer', () => {
    const poor = claim('p', { tenantId: 'poor', count: 0, wanted: 1 });
    const rich = claim('r', { tenantId: 'rich', count: 5, wanted: 5 });
    const ranking = rankUnits([poor, rich], TOTAL);
    const unit = { endpointId: 'p', ordinal: 0, isPromised: false };
    expect(mayPreempt(unit, poor, rich, ranking)).toBe(true);
    expect(mayPreempt({ ...unit, endpointId: 'r' }, rich, poor, ranking)).toBe(false);
    expect(mayPreempt({ ...unit, endpointId: 'r', isPromised: true }, rich, poor, ranking)).toBe(true);
    expect(mayPreempt(unit, poor, rich, { heldByTenant: ranking.heldByTenant, shared: [0, 0] })).toBe(false);
    const equal = rankUnits([claim('a', { tenantId: 'a', count: 2, wanted: 3 }), claim('b', { tenantId: 'b', count: 2, wanted: 2 })], TOTAL);
    expect(mayPreempt({ ...unit, endpointId: 'a' }, claim('a', { tenantId: 'a' }), claim('b', { tenantId: 'b' }), equal)).toBe(false);
    // Its share grows by nothing, and is as large as what would be left: the one that gave way might come first in the next plan.
    const small = { tenantId: 'a', use: [0, 100] as const };
    const even = rankUnits([claim('a', { tenantId: 'a', count: 2, wanted: 2 }), claim('s', { ...small, count: 0 }), claim('b', { tenantId: 'b', count: 3, wanted: 3 })], TOTAL);
    expect(mayPreempt({ ...unit, endpointId: 's' }, claim('s', small), claim('b', { tenantId: 'b' }), even)).toBe(false);
  });

  test('no exchange is undone by the next one', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 8 }), fc.constantFrom(0.5, 1, 4, 8), fc.constantFrom(0.5, 1, 4, 8), fc.tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 100 })), fc.tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 100 })), (countA, countB, weightA, weightB, useA, useB) => {
      const a = claim('a', { tenantId: 'a', weight: weightA, use: useA, count: countA, wanted: countA + 1 });
      const b = claim('b', { tenantId: 'b', weight: weightB, use: useB, count: countB + 1, wanted: countB + 1 });
      if (!mayPreempt({ endpointId: 'a', ordinal: countA, isPromised: false }, a, b, rankUnits([a, b], TOTAL))) return;
      const after = [{ ...a, count: countA + 1 }, { ...b, count: countB }] as const;
      expect(mayPreempt({ endpointId: 'b', ordinal: countB, isPromised: false }, after[1], after[0], rankUnits(after, TOTAL))).toBe(false);
    }));
  });
});
