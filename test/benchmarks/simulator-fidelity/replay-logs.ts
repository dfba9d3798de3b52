// Replays the logs of real engines through the engine model, arrival by arrival, and compares what requests saw.
import { engineDefaults, mixKeys, noHostCosts, profiledStepTime, type EngineParams } from '@penstock/domain-engine-model';
import { simulateTrace, type RequestTiming } from '@penstock/testing-simulator';
import type { LogFacts, SharedPrefixes } from './facts.js';
import { readLog, readProfile, type RealRequest } from './traces.js';

type Measure = 'ttftMs' | 'tpotMs' | 'e2eMs';

export interface Errors {
  readonly ttft: number;
  readonly tpot: number;
  readonly e2e: number;
}

export interface Comparison {
  readonly log: string;
  /** Signed error of the mean, in percent. */
  readonly mean: Errors;
  readonly p50: Errors;
  readonly p90: Errors;
  /** Of the mean over the requests in the middle, none of whose steps went into the host costs. */
  readonly heldOutMiddle: Errors;
  readonly realMeanMs: Errors;
  /** The same run without shared prefixes, and without host costs: what each of the two explains. */
  readonly withoutSharedPrefixes: Errors;
  readonly withoutHostCosts: Errors;
  readonly preemptions: number;
  readonly cachedShare: number;
}

/** Requests before this one saw the first steps; those from the second on ran into the end. Both went into the host costs. */
const MIDDLE = [10, 150] as const;

export function compareLog(facts: LogFacts, shared: SharedPrefixes): Comparison {
  const real = readLog(facts.name);
  const full = replay(facts, withSharedPrefixes(real, shared));
  const { metrics } = full;
  const errors = (reduce: (values: readonly number[]) => number, timings = full.timings, requests: readonly RealRequest[] = real): Errors => errorsOf(timings, requests, reduce);
  return {
    log: facts.name,
    mean: errors(mean), p50: errors((values) => quantile(values, 0.5)), p90: errors((values) => quantile(values, 0.9)),
    heldOutMiddle: errors(mean, full.timings.slice(...MIDDLE), real.slice(...MIDDLE)),
    realMeanMs: { ttft: round(mean(real.map((request) => request.ttftMs))), tpot: round(mean(real.map((request) => request.tpotMs))), e2e: round(mean(real.map((request) => request.e2eMs))) },
    withoutSharedPrefixes: errors(mean, replay(facts, real).timings),
    withoutHostCosts: errors(mean, replay({ ...facts, host: undefined }, withSharedPrefixes(real, shared)).timings),
    preemptions: metrics.preemptions,
    cachedShare: round(metrics.prefixHitTokens / Math.max(1, metrics.prefixQueriedTokens)),
  };
}

function replay(facts: LogFacts, requests: readonly RealRequest[]): ReturnType<typeof simulateTrace> {
  const profile = readProfile(facts.profile, facts.layers, facts.host ?? noHostCosts);
  const params: EngineParams = {
    ...engineDefaults, kvBlocks: Math.floor(facts.kvTokens / engineDefaults.blockTokens), sequencesMax: facts.sequencesMax,
    batchTokensMax: facts.batchTokensMax, stepTime: profiledStepTime(profile),
  };
  const outcome = simulateTrace(requests, params);
  if (outcome.timings.length !== requests.length) throw new Error(`${facts.name}: ${requests.length - outcome.timings.length} requests did not run: ${outcome.refused[0]?.reason ?? 'the engine failed'}`);
  return outcome;
}

/** Lets every so-manieth prompt begin as an earlier one did, so that the cache can find it again if it is still there. */
function withSharedPrefixes(requests: readonly RealRequest[], { every, distance, share }: SharedPrefixes): RealRequest[] {
  const blocksOf = (index: number): number => Math.floor((requests[index]?.promptTokens ?? 0) / engineDefaults.blockTokens);
  return requests.map((request, index) => {
    const continues = index % every === every - 1 && index >= distance;
    const common = continues ? Math.min(Math.floor(blocksOf(index) * share), blocksOf(index - distance)) : 0;
    const contentKeys = Array.from({ length: blocksOf(index) }, (_, block) => mixKeys(block < common ? index - distance : index, block));
    return { ...request, contentKeys };
  });
}

function errorsOf(timings: readonly RequestTiming[], real: readonly RealRequest[], reduce: (values: readonly number[]) => number): Errors {
  const error = (measure: Measure): number => round(100 * (reduce(timings.map((timing) => timing[measure] ?? 0)) / reduce(real.map((request) => request[measure])) - 1));
  return { ttft: error('ttftMs'), tpot: error('tpotMs'), e2e: error('e2eMs') };
}

const round = (value: number): number => Number(value.toFixed(3));

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
