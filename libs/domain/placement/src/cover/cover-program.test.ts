import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { solveCover, type CoverColumn, type CoverProgram } from './cover-program.js';

/** Boxes of a size; a column is a box filled with pieces. */
function boxes(size: number, pieces: readonly { readonly length: number; readonly wanted: number }[]): CoverProgram<readonly number[]> {
  const column = (counts: readonly number[]): CoverColumn<readonly number[]> => ({ cost: 1, gives: counts, content: counts });
  return {
    demand: pieces.map((piece) => piece.wanted),
    first: pieces.map((piece, row) => column(pieces.map((_, at) => (at === row ? Math.floor(size / piece.length) : 0)))),
    best: (prices) => {
      // An unbounded knapsack over whole lengths.
      const worth = [{ value: 0, counts: pieces.map(() => 0) }];
      for (let room = 1; room <= size; room += 1) {
        let best = worth[room - 1] as (typeof worth)[number];
        for (const [row, piece] of pieces.entries()) {
          const rest = worth[room - piece.length];
          if (rest !== undefined && rest.value + (prices[row] as number) > best.value) best = { value: rest.value + (prices[row] as number), counts: rest.counts.map((count, at) => (at === row ? count + 1 : count)) };
        }
        worth.push(best);
      }
      return column((worth[size] as (typeof worth)[number]).counts);
    },
  };
}

describe('solving a program of coverage', () => {
  test('the cutting-stock example of Gilmore and Gomory type has its known optimum', () => {
    const { cost, lowerBound } = solveCover(boxes(10, [{ length: 3, wanted: 9 }, { length: 5, wanted: 4 }]));
    expect(cost).toBeCloseTo(5, 6);
    expect(lowerBound).toBeCloseTo(5, 6);
  });

  test('the cost meets the bound, and every demand is met', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ length: fc.integer({ min: 1, max: 20 }), wanted: fc.integer({ min: 0, max: 50 }) }), { minLength: 1, maxLength: 8 }), (pieces) => {
        const { cost, lowerBound, amounts } = solveCover(boxes(20, pieces));
        expect(cost).toBeCloseTo(lowerBound, 5);
        for (const [row, piece] of pieces.entries()) expect(amounts.reduce((sum, { column, amount }) => sum + amount * (column.gives[row] as number), 0)).toBeGreaterThan(piece.wanted - 1e-6);
      }),
    );
  });
});
