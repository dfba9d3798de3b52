import { Worker } from 'node:worker_threads';
import type { IntegerProgram, Optimiser, OptimiserLimits, ProgramSolution } from '@penstock/domain-placement';

/** The solver stops by itself at its limit; a thread that is still there so much later is ended. */
const GRACE_MS = 10_000;

/** More entries than this are refused before any memory is taken: the plan has to be cut into parts. */
const ENTRIES_MAX = 5_000_000;

interface WorkerAnswer {
  readonly isOptimal: boolean;
  readonly isInfeasible: boolean;
  readonly cost: number;
  readonly bound: number;
  readonly values: readonly number[];
}

/** HiGHS, compiled to WebAssembly, in a thread for each program. The same program gives the same solution. */
export class HighsOptimiser implements Optimiser {
  async minimise(program: IntegerProgram, limits: OptimiserLimits): Promise<ProgramSolution> {
    const options = { output_flag: false, random_seed: 1, time_limit: limits.timeMs / 1_000, mip_rel_gap: limits.gap, mip_abs_gap: limits.gap === 0 ? 0 : 1e-6 };
    const answer = await this.solve(toRows(program), options, limits.timeMs + GRACE_MS);
    return toSolution(program, answer);
  }

  private solve(program: ProgramRows, options: object, limitMs: number): Promise<WorkerAnswer> {
    const worker = new Worker(new URL('./solve-worker.mjs', import.meta.url), { workerData: { program, options } });
    return new Promise<WorkerAnswer>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`The optimiser did not stop within ${limitMs} ms.`)), limitMs);
      worker.once('message', (answer: WorkerAnswer) => resolve(answer));
      worker.once('error', (error) => reject(new Error(`The optimiser failed: ${error.message}`, { cause: error })));
      worker.once('exit', (code) => reject(new Error(`The optimiser's thread ended with ${code} and no answer.`)));
      // After the first of the three has settled the promise, the others change nothing.
      const end = (): void => clearTimeout(timer);
      worker.once('message', end).once('error', end).once('exit', end);
    }).finally(() => worker.terminate());
  }
}

/** The program in the solver's form: the coefficients row by row. */
interface ProgramRows {
  readonly cost: Float64Array;
  readonly upper: Float64Array;
  readonly isWhole: Uint8Array;
  readonly rowLower: Float64Array;
  readonly rowUpper: Float64Array;
  readonly starts: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
}

function toRows({ variables, constraints }: IntegerProgram): ProgramRows {
  const entries = constraints.reduce((sum, constraint) => sum + constraint.terms.length, 0);
  if (entries > ENTRIES_MAX) throw new Error(`The program has ${entries} coefficients, at most ${ENTRIES_MAX} are solved: plan fewer endpoints at a time.`);
  const starts = new Int32Array(constraints.length + 1);
  const indices = new Int32Array(entries);
  const values = new Float64Array(entries);
  let at = 0;
  for (const [row, constraint] of constraints.entries()) {
    for (const { variable, times } of constraint.terms) {
      if (variables[variable] === undefined) throw new Error(`Constraint ${constraint.name} names variable ${variable}, there are ${variables.length}.`);
      indices[at] = variable;
      values[at] = times;
      at += 1;
    }
    starts[row + 1] = at;
  }
  return {
    cost: Float64Array.from(variables, (variable) => variable.cost),
    upper: Float64Array.from(variables, (variable) => variable.atMost ?? Number.POSITIVE_INFINITY),
    isWhole: Uint8Array.from(variables, (variable) => (variable.isWhole ? 1 : 0)),
    rowLower: Float64Array.from(constraints, (constraint) => constraint.atLeast ?? Number.NEGATIVE_INFINITY),
    rowUpper: Float64Array.from(constraints, (constraint) => constraint.atMost ?? Number.POSITIVE_INFINITY),
    starts,
    indices,
    values,
  };
}

function toSolution(program: IntegerProgram, { isOptimal, isInfeasible, cost, bound, values }: WorkerAnswer): ProgramSolution {
  if (isInfeasible) return { status: 'infeasible', cost: Number.POSITIVE_INFINITY, bound: Number.POSITIVE_INFINITY, values: [] };
  if (values.length === 0) return { status: 'none_found', cost: Number.POSITIVE_INFINITY, bound, values: [] };
  const whole = values.map((value, index) => (program.variables[index]?.isWhole === true ? Math.round(value) : value));
  return { status: isOptimal ? 'optimal' : 'feasible', cost, bound, values: whole };
}
