import { parseArgs } from 'node:util';
import type { Run } from '../../harness.js';
import { runScenario } from './fleet-run.js';
import { scenarioOf } from './scenario.js';
import { shrinkScenario } from './shrink-scenario.js';

const RUNS_DEFAULT = 2_000;
const RUNS_MAX = 1_000_000;
const PROGRESS_EVERY = 200;
/** Failing runs beyond this many are counted, and not told one by one. */
const FAILURES_TOLD_MAX = 5;

/**
 * Thousands of runs of the whole scheduler in virtual time, each from its own seed: `--runs N`, and `--seed S --runs 1` repeats one.
 * The first run has the seed of the drill, the next ones follow it.
 */
export const run: Run = async ({ seed, args, say }) => {
  const { values } = parseArgs({ args: [...args], options: { runs: { type: 'string', default: String(RUNS_DEFAULT) } }, strict: false });
  const runs = Number(values['runs']);
  if (!Number.isInteger(runs) || runs < 1 || runs > RUNS_MAX) throw new RangeError(`--runs is ${String(values['runs'])}: give a whole number from 1 to ${RUNS_MAX}.`);
  const startedMs = performance.now();
  const failing: { seed: number; violations: readonly unknown[] }[] = [];
  const crashPoints = new Set<string>();
  const happened = new Map<string, number>();
  const totals = { violations: 0, events: 0, crashes: 0, virtualMs: 0 };
  for (let index = 0; index < runs; index += 1) {
    const scenario = scenarioOf(seed + index);
    const outcome = await runScenario(scenario);
    totals.violations += outcome.violations.length;
    totals.events += outcome.events;
    totals.crashes += outcome.crashes.length;
    for (const point of outcome.crashes) crashPoints.add(point);
    for (const [type, count] of outcome.countOf) happened.set(type, (happened.get(type) ?? 0) + count);
    totals.virtualMs += outcome.virtualMs;
    const [first] = outcome.violations;
    if (first !== undefined && failing.length < FAILURES_TOLD_MAX) {
      failing.push({ seed: scenario.seed, violations: outcome.violations.slice(0, FAILURES_TOLD_MAX) });
      const shrunken = await shrinkScenario(scenario, first.rule);
      say(`seed ${scenario.seed} breaks "${first.rule}": ${first.detail}\n  repeat it with: npm run drill -- fleet --seed ${scenario.seed} --runs 1\n  what is left of its script: ${JSON.stringify({ isSplit: shrunken.isSplit, endpoints: shrunken.endpoints, actions: shrunken.actions, nodes: shrunken.fleet.nodes })}`);
    }
    if ((index + 1) % PROGRESS_EVERY === 0) say(`${index + 1} runs, ${totals.violations} violations, ${Math.round((performance.now() - startedMs) / 1_000)} s`);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  return {
    figures: { runs, violations: totals.violations },
    pass: totals.violations === 0,
    detail: { events: totals.events, crashes: totals.crashes, crashPoints: crashPoints.size, virtualHours: totals.virtualMs / 3_600_000, msPerRun: (seconds * 1_000) / runs, happened: Object.fromEntries([...happened].sort()), failing },
  };
};
