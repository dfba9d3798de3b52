import { describe, expect, test } from '@jest/globals';
import type { IntegerProgram } from '@penstock/domain-placement';
import { HighsOptimiser } from './highs-optimiser.js';

const LIMITS = { timeMs: 10_000, gap: 0 };

/** Boxes of 10 for items of 6, 6, 4, 4 and 5: each column is one way to fill a box. */
function boxes(isWhole: boolean): IntegerProgram {
  const ways = [[1, 1, 0], [0, 2, 0], [0, 1, 1], [0, 0, 2]];
  return {
    variables: ways.map((_, index) => ({ name: `way-${index}`, cost: 1, isWhole })),
    constraints: [2, 2, 1].map((wanted, item) => ({ name: `item-${item}`, atLeast: wanted, terms: ways.map((way, variable) => ({ variable, times: way[item] as number })) })),
  };
}

describe('HighsOptimiser', () => {
  const optimiser = new HighsOptimiser();

  test('finds the optimum of a whole-number program and proves it', async () => {
    const solution = await optimiser.minimise(boxes(true), LIMITS);
    expect(solution).toMatchObject({ status: 'optimal', cost: 3, bound: 3 });
    expect(solution.values.every(Number.isInteger)).toBe(true);
  });

  test('solves the relaxation of it to a lower cost', async () => {
    const solution = await optimiser.minimise(boxes(false), LIMITS);
    expect(solution.status).toBe('optimal');
    expect(solution.cost).toBeCloseTo(2.5);
  });

  test('says so when nothing satisfies the constraints', async () => {
    const program: IntegerProgram = { variables: [{ name: 'x', cost: 1, isWhole: true, atMost: 1 }], constraints: [{ name: 'too much', atLeast: 2, terms: [{ variable: 0, times: 1 }] }] };
    expect(await optimiser.minimise(program, LIMITS)).toMatchObject({ status: 'infeasible', values: [] });
  });

  test('refuses a program that names a variable it does not have', async () => {
    const program: IntegerProgram = { variables: [], constraints: [{ name: 'lost', atLeast: 1, terms: [{ variable: 3, times: 1 }] }] };
    await expect(optimiser.minimise(program, LIMITS)).rejects.toThrow('Constraint lost names variable 3');
  });
});
