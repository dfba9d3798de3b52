import { performance } from 'node:perf_hooks';
import { migProgram, packMig, type IntegerProgram } from '@penstock/domain-placement';
import { HighsOptimiser } from '@penstock/infra-optimiser';
import type { Run } from '../../harness.js';
import { numberIn, readTrace } from '../traces.js';
import { checkPacking } from './check-packing.js';
import { a100, readScenario, SCENARIOS } from './scenarios.js';

/** The proof of one scenario may take so long; it takes a second or two. */
const PROOF_LIMIT_MS = 60_000;

/** What integer programming finds with the same profiles, objectives and rule; and what the heuristic alone has to reach. */
const OPTIMAL_MOST = [2, 3, 5, 7, 12, 15];
const HEURISTIC_MOST = [2, 3, 5, 7, 13, 16];

const TENFOLD = 10;
const TENFOLD_OVER_BOUND_MOST = 0.03;

/** ParvaGPU's six scenarios: the fewest A100s with a proof, the heuristic alone, and what ParvaGPU shipped. */
export const run: Run = async ({ say }) => {
  const optimiser = new HighsOptimiser();
  const rows = [];
  const problems: string[] = [];
  for (const name of SCENARIOS) {
    const { demands } = readScenario(name);
    const started = performance.now();
    const heuristic = packMig(a100(), demands);
    const heuristicMs = performance.now() - started;
    const { program, read } = migProgram(a100(), demands);
    const solution = await optimiser.minimise(program, { timeMs: PROOF_LIMIT_MS, gap: 0 });
    const optimal = read(solution.values);
    for (const [kind, gpus] of [['heuristic', heuristic.gpus], ['optimal', optimal]] as const) problems.push(...checkPacking(name, 1, gpus).map((problem) => `${name} ${kind}: ${problem}`));
    const isProven = solution.status === 'optimal' && Math.ceil(solution.bound - 1e-6) === optimal.length;
    rows.push({ name, optimal: optimal.length, isProven, heuristic: heuristic.gpus.length, bound: heuristic.fractionalBound, parvagpu: shipped(name), heuristicMs: Math.round(heuristicMs), totalMs: Math.round(performance.now() - started) });
    say(`${name}: ${optimal.length} optimal${isProven ? ', proven' : ''}; ${heuristic.gpus.length} by the heuristic; ParvaGPU ${shipped(name)}; linear bound ${heuristic.fractionalBound.toFixed(2)}`);
  }
  const tenfold = await runTenfold(optimiser, problems);
  say(`S6 times ten: ${tenfold.gpus} GPUs, linear bound ${tenfold.bound.toFixed(2)}`);
  for (const problem of problems) say(problem);
  const figures = {
    gpus_optimal: rows.map((row) => row.optimal),
    gpus_heuristic: rows.map((row) => row.heuristic),
    tenfold_over_bound: tenfold.gpus / tenfold.bound - 1,
    proven: rows.every((row) => row.isProven),
    illegal: problems.length,
  };
  const pass =
    figures.proven &&
    problems.length === 0 &&
    rows.every((row, index) => row.optimal <= (OPTIMAL_MOST[index] as number) && row.heuristic <= (HEURISTIC_MOST[index] as number)) &&
    figures.tenfold_over_bound <= TENFOLD_OVER_BOUND_MOST;
  return { figures, pass, detail: { scenarios: rows, tenfold, problems } };
};

/** The heuristic on ten times the load; the bound is the linear relaxation, by the solver and not by the planner itself. */
async function runTenfold(optimiser: HighsOptimiser, problems: string[]): Promise<{ gpus: number; bound: number; plannersBound: number }> {
  const { demands } = readScenario('S6', TENFOLD);
  const packing = packMig(a100(), demands);
  problems.push(...checkPacking('S6', TENFOLD, packing.gpus).map((problem) => `tenfold: ${problem}`));
  const relaxed = await optimiser.minimise(relaxationOf(migProgram(a100(), demands).program), { timeMs: PROOF_LIMIT_MS, gap: 0 });
  return { gpus: packing.gpus.length, bound: relaxed.cost, plannersBound: packing.fractionalBound };
}

function relaxationOf(program: IntegerProgram): IntegerProgram {
  return { ...program, variables: program.variables.map((variable) => ({ ...variable, isWhole: false })) };
}

function shipped(scenario: string): number {
  return new Set(readTrace('parvagpu-deployments.csv.gz').filter((row) => row['scenario'] === scenario).map((row) => `${numberIn(row, 'node')}/${numberIn(row, 'gpu')}`)).size;
}
