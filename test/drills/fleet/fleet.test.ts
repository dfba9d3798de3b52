import { describe, expect, test } from '@jest/globals';
import { runScenario } from './fleet-run.js';
import { scenarioOf } from './scenario.js';

const RUNS = 60;

describe('the whole scheduler in virtual time', () => {
  test('keeps every invariant through faults, and comes to rest', async () => {
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const { violations } = await runScenario(scenarioOf(seed));
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });

  test('does the same again from the same seed', async () => {
    const [one, other] = [await runScenario(scenarioOf(7)), await runScenario(scenarioOf(7))];
    expect(other).toEqual(one);
  });
});
