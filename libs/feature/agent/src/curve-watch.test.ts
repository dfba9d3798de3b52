import { afterEach, expect, test } from '@jest/globals';
import type { EnginePace, EngineTelemetry } from '@penstock/domain-serving';
import { AgentWorld, type FakeEngine } from './agent-world-suite.js';

const SECOND_MS = 1_000;
const AT_ONCE = 4;

const world = new AgentWorld({ PROFILE_INTERVAL_MS: String(30 * SECOND_MS) });

afterEach(() => world.close());

/** Requests of 10 tokens in and 20 out, of which each of four at once makes one in each second. */
function goOn({ telemetry }: FakeEngine, itlMs: number): EngineTelemetry {
  const { firstTokens, firstTokenSeconds, tokenGaps, tokenGapSeconds }: EnginePace = telemetry?.pace ?? { firstTokens: 0, firstTokenSeconds: 0, tokenGaps: 0, tokenGapSeconds: 0 };
  return {
    running: AT_ONCE, waiting: 0, kvCacheUsage: 0.1, kvTokens: 77, promptTokensTotal: (telemetry?.promptTokensTotal ?? 0) + AT_ONCE * 10, completionTokensTotal: (telemetry?.completionTokensTotal ?? 0) + AT_ONCE * 20,
    pace: { firstTokens: firstTokens + AT_ONCE, firstTokenSeconds: firstTokenSeconds + AT_ONCE * 0.05, tokenGaps: tokenGaps + AT_ONCE, tokenGapSeconds: tokenGapSeconds + AT_ONCE * (itlMs / SECOND_MS) },
  };
}

test('an agent says what an engine does under load: once an interval at most, only news, and again when the log was away', async () => {
  const agent = await world.startAgent();
  await world.deploy();
  await world.place('rep_1', agent.nodeId);
  await world.run(SECOND_MS);
  const engine = world.machine.running[0] as FakeEngine;
  const serve = async (seconds: number, itlMs: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      engine.telemetry = goOn(engine, itlMs);
      await world.run(SECOND_MS);
    }
  };
  const told = () => world.log.all('EV_FLEET').filter(({ type }) => type === 'replica-profile.measured.v1');
  await serve(20, 25);
  expect(told()).toHaveLength(1);
  world.switch.isAway = true;
  await serve(20, 25);
  world.switch.isAway = false;
  await serve(60, 25);
  expect(told()).toHaveLength(2);
  const curve = [{ concurrency: AT_ONCE, requestsPerS: expect.closeTo(AT_ONCE, 0) as unknown as number, ttftMs: expect.closeTo(50) as unknown as number, itlMs: expect.closeTo(25) as unknown as number, promptTokens: 10, completionTokens: 20, replicaId: 'rep_1' }];
  expect([...world.fleet().profiles.values()]).toMatchObject([{ replicaId: 'rep_1', start: { pullMs: 7 }, curve }]);
  await serve(70, 50);
  expect(told().at(-1)?.data).toMatchObject({ curve: [{ itlMs: expect.closeTo(50) }] });
  expect(world.signals.published.filter(({ data }) => typeof data === 'object' && data !== null && 'pace' in data)).toEqual([]);
});
