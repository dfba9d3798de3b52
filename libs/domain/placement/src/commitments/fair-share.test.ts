import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { dominantShare, FairFilling, type ResourceVector, type TenantWants } from './fair-share.js';

const CAPACITY = [400, 400, 400];
const MANY = 110;

interface Unit {
  readonly id: string;
  readonly use: ResourceVector;
}

/** Gives every unit that the amounts still hold, as if nothing else stood in its way. */
function shareFairly(capacity: ResourceVector, all: readonly TenantWants<Unit>[]): { readonly order: readonly Unit[]; readonly beyond: readonly Unit[]; readonly shares: ReadonlyMap<string, number> } {
  const free = capacity.map((amount, index) => amount - all.reduce((sum, tenant) => sum + (tenant.held[index] ?? 0), 0));
  const filling = new FairFilling(capacity, all);
  const order: Unit[] = [];
  const beyond: Unit[] = [];
  for (let unit = filling.next(); unit !== undefined; unit = filling.next()) {
    const { use } = unit;
    if (!use.every((amount, index) => amount <= (free[index] ?? 0))) {
      beyond.push(unit);
      continue;
    }
    for (const index of free.keys()) free[index] = (free[index] ?? 0) - (use[index] ?? 0);
    filling.account(unit.id.split(':')[0] ?? '', use, 1);
    order.push(unit);
  }
  return { order, beyond, shares: new Map([...filling.heldByTenant].map(([tenantId, held]) => [tenantId, dominantShare(held, capacity)])) };
}

/** A tenant that wants more of the same than there is. */
function greedy(tenantId: string, use: ResourceVector, weight = 1, count = MANY): TenantWants<Unit> {
  return { tenantId, weight, held: CAPACITY.map(() => 0), wanted: Array.from({ length: count }, (_, index) => ({ id: `${tenantId}:${index}`, use })) };
}

const granted = (result: ReturnType<typeof shareFairly>, tenantId: string): number => result.order.filter(({ id }) => id.startsWith(`${tenantId}:`)).length;
const uses = fc.array(fc.integer({ min: 4, max: 16 }), { minLength: 3, maxLength: 3 });
const tenants = fc.array(fc.record({ use: uses, weight: fc.integer({ min: 1, max: 8 }) }), { minLength: 2, maxLength: 5 }).map((all) => all.map(({ use, weight }, index) => greedy(`t${index}`, use, weight)));

describe('dominant resource fairness', () => {
  test('the example of the paper: shares of the dominant resource are equal', () => {
    // 9 processors and 18 GB; A wants 1 and 4 for each task, B wants 3 and 1: 3 tasks and 2 tasks, two thirds each.
    const a = { ...greedy('a', [1, 4], 1, 20), held: [0, 0] };
    const b = { ...greedy('b', [3, 1], 1, 20), held: [0, 0] };
    const result = shareFairly([9, 18], [a, b]);
    expect([granted(result, 'a'), granted(result, 'b')]).toEqual([3, 2]);
    expect([...result.shares.values()].map((share) => share.toFixed(3))).toEqual(['0.667', '0.667']);
  });

  test('sharing incentive: nobody gets less than its weight of the whole, but for a unit of each tenant', () => {
    fc.assert(fc.property(tenants, (all) => {
      const result = shareFairly(CAPACITY, all);
      const weights = all.reduce((sum, { weight }) => sum + weight, 0);
      const units = all.reduce((sum, { wanted }) => sum + dominantShare(wanted[0]?.use ?? [], CAPACITY), 0);
      for (const { tenantId, weight } of all) expect((result.shares.get(tenantId) ?? 0) + units + 1e-9).toBeGreaterThanOrEqual(weight / weights);
    }), { numRuns: 100 });
  });

  test('nothing that somebody could use stays unused', () => {
    fc.assert(fc.property(tenants, (all) => {
      const { order, beyond } = shareFairly(CAPACITY, all);
      const free = CAPACITY.map((amount, index) => amount - order.reduce((sum, { use }) => sum + (use[index] ?? 0), 0));
      expect(free.every((amount) => amount >= -1e-6)).toBe(true);
      expect(beyond.some(({ use }) => use.every((amount, index) => amount <= (free[index] ?? 0)))).toBe(false);
      expect(order.length + beyond.length).toBe(all.length * MANY);
    }), { numRuns: 100 });
  });

  test('a tenant that overstates what each of its units takes does not run more of them, but for one', () => {
    fc.assert(fc.property(tenants, fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 3 }), (all, lie) => {
      const honest = granted(shareFairly(CAPACITY, all), 't0');
      const use = all[0]?.wanted[0]?.use ?? [];
      const lying = greedy('t0', use.map((amount, index) => amount * (lie[index] ?? 1)), all[0]?.weight ?? 1);
      expect(granted(shareFairly(CAPACITY, [lying, ...all.slice(1)]), 't0')).toBeLessThanOrEqual(honest + 1);
    }), { numRuns: 100 });
  });

  test('more weight never means less, and what is held counts', () => {
    fc.assert(fc.property(tenants, (all) => {
      const before = shareFairly(CAPACITY, all).shares.get('t0') ?? 0;
      const first = all[0] as TenantWants<Unit>;
      const largest = Math.max(...all.map(({ wanted }) => dominantShare(wanted[0]?.use ?? [], CAPACITY)));
      expect((shareFairly(CAPACITY, [{ ...first, weight: first.weight * 2 }, ...all.slice(1)]).shares.get('t0') ?? 0) + largest).toBeGreaterThanOrEqual(before);
    }), { numRuns: 100 });
    const rich = { ...greedy('rich', [10, 10, 10]), held: [200, 200, 200] };
    const poor = greedy('poor', [10, 10, 10]);
    expect(shareFairly(CAPACITY, [rich, poor]).order.slice(0, 15).every(({ id }) => id.startsWith('poor'))).toBe(true);
  });

  test('what finds no place costs its tenant nothing: it stays the next one', () => {
    const filling = new FairFilling(CAPACITY, [greedy('poor', [10, 10, 10], 1, 3), { ...greedy('rich', [10, 10, 10], 1, 1), held: [200, 200, 200] }]);
    expect([filling.next(), filling.next(), filling.next(), filling.next(), filling.next()].map((unit) => unit?.id)).toEqual(['poor:0', 'poor:1', 'poor:2', 'rich:0', undefined]);
  });

  test('resources that the fleet does not have count for nothing, and the order of tenants does not matter', () => {
    expect(dominantShare([1, 5], [2, 0])).toBe(0.5);
    const all = [greedy('a', [5, 1, 1]), greedy('b', [1, 5, 1], 2)];
    expect(shareFairly(CAPACITY, all).order).toEqual(shareFairly(CAPACITY, [...all].reverse()).order);
  });
});
