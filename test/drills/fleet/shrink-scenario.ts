import { runScenario } from './fleet-run.js';
import type { Scenario } from './scenario.js';

/** More runs than this are not spent on making one script shorter. */
const TRIES_MAX = 80;

/** A script with fewer events that still breaks the same rule, found by leaving out one part after the other. */
export async function shrinkScenario(scenario: Scenario, rule: string): Promise<Scenario> {
  let smallest = scenario;
  let tries = 0;
  const stillBreaks = async (candidate: Scenario): Promise<boolean> => {
    tries += 1;
    return tries <= TRIES_MAX && (await runScenario(candidate)).violations.some((violation) => violation.rule === rule);
  };
  for (let index = smallest.actions.length - 1; index >= 0; index -= 1) {
    const candidate = { ...smallest, actions: smallest.actions.filter((_action, at) => at !== index) };
    if (await stillBreaks(candidate)) smallest = candidate;
  }
  // Actions name endpoints by index, so only the last ones can go without changing what the others mean.
  for (let count = smallest.endpoints.length - 1; count >= 1; count -= 1) {
    const candidate = { ...smallest, endpoints: smallest.endpoints.slice(0, count) };
    if (!(await stillBreaks(candidate))) break;
    smallest = candidate;
  }
  return smallest;
}
