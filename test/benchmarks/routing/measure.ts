import { engineDefaults, linearStepTime, timingProfile, type EngineParams } from '@penstock/domain-engine-model';
import type { ReplicaPace } from '@penstock/domain-routing';
import { simulateFleetTrace } from '@penstock/testing-simulator';
import { policyOf, type PolicyName } from './policies.js';
import { BLOCK_TOKENS, windowOf, type RoutedRequest } from './trace-requests.js';

/** One set-up: which replicas, how many, and what they are sent. */
export interface Fleet {
  readonly profile: string;
  readonly replicas: number;
  readonly modelTokensMax: number;
}

export interface Load {
  readonly requests: readonly RoutedRequest[];
  /** First request of the window, and how many. */
  readonly start: number;
  readonly count: number;
  /** How many times as fast as in the trace. */
  readonly speed: number;
}

export interface Measured {
  /** Milliseconds. */
  readonly p50TtftMs: number;
  readonly p90TtftMs: number;
  readonly hitTokens: number;
  readonly promptTokens: number;
  /** The busiest replica over the mean, by the tokens that each computed. */
  readonly workMaxOverMean: number;
  /** The same by the requests that each had in work, over time. */
  readonly inFlightMaxOverMean: number;
}

const SLOTS = 256;

export function paceOf({ profile }: Fleet): ReplicaPace {
  const { step, kvTokens } = timingProfile(profile);
  return { prefillMsPerToken: step.prefillUs / 1_000, cacheTokens: kvTokens };
}

export function paramsOf(fleet: Fleet): EngineParams {
  const { step, kvTokens } = timingProfile(fleet.profile);
  return { ...engineDefaults, blockTokens: BLOCK_TOKENS, batchTokensMax: 8_192, kvBlocks: Math.floor(kvTokens / BLOCK_TOKENS), sequencesMax: SLOTS, modelTokensMax: fleet.modelTokensMax, stepTime: linearStepTime(step) };
}

export function measure(fleet: Fleet, load: Load, policy: PolicyName, seed: number): Measured {
  const params = paramsOf(fleet);
  const requests = windowOf(load.requests, load.start, load.count, load.speed);
  const residence = Array<number>(fleet.replicas).fill(0);
  const placed = new Map<string, number>();
  const router = policyOf(policy, { replicas: fleet.replicas, slots: SLOTS, pace: paceOf(fleet), seed });
  const { timings, metrics } = simulateFleetTrace(requests, Array.from({ length: fleet.replicas }, () => params), {
    choose(request, nowMs, engines) {
      const engine = router.choose(request, nowMs, engines);
      if (engine !== undefined) placed.set(request.id, engine);
      return engine;
    },
    ended: (request, engine, nowMs) => router.ended?.(request, engine, nowMs),
  });
  for (const { id, e2eMs } of timings) {
    const engine = placed.get(id) ?? 0;
    residence[engine] = (residence[engine] ?? 0) + e2eMs;
  }
  const ttfts = timings.map(({ ttftMs }) => ttftMs).sort((left, right) => left - right);
  const at = (share: number): number => ttfts[Math.min(ttfts.length - 1, Math.floor(share * ttfts.length))] ?? Infinity;
  const maxOverMean = (values: readonly number[]): number => (Math.max(...values) * values.length) / values.reduce((sum, value) => sum + value, 0);
  return {
    p50TtftMs: at(0.5), p90TtftMs: at(0.9),
    hitTokens: timings.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0), promptTokens: requests.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    workMaxOverMean: maxOverMean(metrics.map(({ promptTokens, prefixHitTokens, producedTokens }) => promptTokens - prefixHitTokens + producedTokens)), inFlightMaxOverMean: maxOverMean(residence),
  };
}
