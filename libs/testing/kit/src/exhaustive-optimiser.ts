import type { IntegerProgram, Optimiser, ProgramSolution } from '@penstock/domain-placement';

/** More variables than this are not tried out: a real solver is for those. */
const VARIABLES_MAX = 20;

/** Tries every choice of variables that are 0 or 1: exact, and for programs of a few variables only. */
export class ExhaustiveOptimiser implements Optimiser {
  minimise(program: IntegerProgram): Promise<ProgramSolution> {
    if (program.variables.length > VARIABLES_MAX) return Promise.resolve({ status: 'none_found', cost: 0, bound: Number.NEGATIVE_INFINITY, values: [] });
    let best: readonly number[] = [];
    let cost = Number.POSITIVE_INFINITY;
    for (let choice = 0; choice < 2 ** program.variables.length; choice += 1) {
      const values = program.variables.map((_, index) => (choice >> index) & 1);
      const isLegal = program.constraints.every(({ terms, atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY }) => {
        const sum = terms.reduce((total, { variable, times }) => total + times * (values[variable] as number), 0);
        return sum >= atLeast - 1e-9 && sum <= atMost + 1e-9;
      });
      const total = program.variables.reduce((sum, variable, index) => sum + variable.cost * (values[index] as number), 0);
      if (isLegal && total < cost) [best, cost] = [values, total];
    }
    return Promise.resolve({ status: best.length === 0 ? 'infeasible' : 'optimal', cost, bound: cost, values: best });
  }
}
