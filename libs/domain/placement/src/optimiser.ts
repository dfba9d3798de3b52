/** A linear cost to be made as small as it can be, over whole and fractional variables, none of them negative. */
export interface IntegerProgram {
  readonly variables: readonly ProgramVariable[];
  readonly constraints: readonly ProgramConstraint[];
}

export interface ProgramVariable {
  readonly name: string;
  readonly cost: number;
  readonly isWhole: boolean;
  readonly atMost?: number;
}

export interface ProgramConstraint {
  readonly name: string;
  readonly terms: readonly { readonly variable: number; readonly times: number }[];
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface OptimiserLimits {
  /** After so long the best that was found is returned. */
  readonly timeMs: number;
  /** A solution so close to the bound, as a share of it, ends the search; 0 asks for the optimum itself. */
  readonly gap: number;
}

export interface ProgramSolution {
  /** `optimal` within the gap asked for, `feasible` when time ran out first. */
  readonly status: 'optimal' | 'feasible' | 'infeasible' | 'none_found';
  readonly cost: number;
  /** Proven: no solution costs less. */
  readonly bound: number;
  /** One value for each variable; empty without a solution. Values of whole variables are whole. */
  readonly values: readonly number[];
}

/** Integer programming as a port: the domain states the program, an adapter solves it. */
export interface Optimiser {
  minimise(program: IntegerProgram, limits: OptimiserLimits): Promise<ProgramSolution>;
}
