// How good the choice of a replica is: eight replicas of the engine model in virtual time, under traces of real traffic, by the router's own code.
import type { Report, RunContext } from '../../harness.js';
import { measureFairness, type FairnessResult } from './fairness.js';
import { AllSlotsTaken, type PolicyName } from './policies.js';
import { measure, type Fleet, type Load, type Measured } from './measure.js';
import { distinctTrace, sharedPrefixTrace, type RoutedRequest } from './trace-requests.js';

const MODEL_TOKENS_MAX = 131_072;
/** A node of eight H100 for each replica. */
const FLEET: Fleet = { profile: '8xh100-llama-3.1-70b-fp8', replicas: 8, modelTokensMax: MODEL_TOKENS_MAX };
/** The knee is the last load at which the 90th percentile of the time to the first token is at most so many times that of an idle fleet. */
const KNEE_SLOWDOWN = 3;
const LOAD_SHARE = 0.8;
const IDLE_SPEED = 0.5;
const SPEED_MAX = 256;
/** Of the speed. */
const KNEE_PRECISION = 0.02;
const SEEDS = 3;
const SEED_STEP = 7_919;

const LIMITS = { hitShareMin: 0.9, againstRoundRobinMax: 0.2, noPrefixLossMax: 0.03, loadMax: 1.3, fairnessMax: 0.05 } as const;
const POLICIES: readonly PolicyName[] = ['ours', 'oracle', 'round-robin', 'random', 'least-loaded', 'ours, four gateways', 'ours, four silent gateways'];

interface TraceCase {
  readonly name: string;
  readonly kind: 'shared' | 'mixed' | 'distinct';
  readonly requests: readonly RoutedRequest[];
  /** Requests of one window. */
  readonly count: number;
}

interface CaseResult {
  readonly trace: string;
  readonly kind: TraceCase['kind'];
  readonly seed: number;
  readonly kneeSpeed: number;
  readonly byPolicy: Readonly<Record<PolicyName, Measured>>;
}

/** Needs the trace files (`PENSTOCK_TRACES`). A seed draws the window of each trace, and what the random policy does. */
export async function run({ seed, say }: RunContext): Promise<Report> {
  const seeds = Array.from({ length: SEEDS }, (_, index) => seed + index * SEED_STEP);
  const cases: TraceCase[] = [
    { name: 'Mooncake, synthetic (64 % of blocks seen before)', kind: 'shared', requests: sharedPrefixTrace('mooncake-synthetic.csv.gz', MODEL_TOKENS_MAX), count: 3_000 },
    { name: 'Mooncake, conversation (37 % of blocks seen before)', kind: 'mixed', requests: sharedPrefixTrace('mooncake-conversation.csv.gz', MODEL_TOKENS_MAX), count: 6_000 },
    { name: 'Azure, conversation (no block seen before)', kind: 'distinct', requests: distinctTrace('azure-llm-2023-conv.csv.gz', MODEL_TOKENS_MAX), count: 6_000 },
  ];
  const results: CaseResult[] = [];
  for (const trace of cases) for (const drawn of seeds) results.push(measureCase(trace, drawn, say));
  const fairness: FairnessResult[] = [];
  for (const drawn of seeds) {
    fairness.push(await measureFairness(drawn));
    say(`fairness, seed ${drawn}: share of tokens ${fairness.at(-1)?.shares.map((share) => share.toFixed(3)).join(' ')} of 0.800`);
  }
  const of = (...kinds: readonly TraceCase['kind'][]): CaseResult[] => results.filter(({ kind }) => kinds.includes(kind));
  const figures = {
    hit_share_of_oracle: Math.min(...of('shared', 'mixed').map(({ byPolicy }) => byPolicy.ours.hitTokens / byPolicy.oracle.hitTokens)),
    p90_ttft_vs_round_robin: Math.max(...of('shared').map(({ byPolicy }) => byPolicy.ours.p90TtftMs / byPolicy['round-robin'].p90TtftMs)),
    no_prefix_loss: Math.max(...of('distinct').map(({ byPolicy }) => byPolicy.ours.p90TtftMs / byPolicy['least-loaded'].p90TtftMs - 1)),
    load_max_over_mean: Math.max(...results.map(({ byPolicy }) => Math.max(byPolicy.ours.workMaxOverMean, byPolicy.ours.inFlightMaxOverMean))),
    fairness_error: Math.max(...fairness.map(({ worstError }) => worstError)),
  };
  const reached = {
    hit_share_of_oracle: figures.hit_share_of_oracle >= LIMITS.hitShareMin, p90_ttft_vs_round_robin: figures.p90_ttft_vs_round_robin <= LIMITS.againstRoundRobinMax,
    no_prefix_loss: figures.no_prefix_loss <= LIMITS.noPrefixLossMax, load_max_over_mean: figures.load_max_over_mean <= LIMITS.loadMax, fairness_error: figures.fairness_error <= LIMITS.fairnessMax,
  };
  return { figures: mapped(figures), detail: { seeds, fleet: FLEET, limits: LIMITS, reached, cases: results.map(detailOf), fairness }, pass: Object.values(reached).every(Boolean) };
}

function measureCase(trace: TraceCase, seed: number, say: (text: string) => void): CaseResult {
  const room = Math.max(0, trace.requests.length - trace.count);
  const window = { requests: trace.requests, start: room === 0 ? 0 : (seed * 2_654_435_761) % room, count: trace.count };
  const kneeSpeed = findKnee(window, seed);
  const load: Load = { ...window, speed: kneeSpeed * LOAD_SHARE };
  const byPolicy = Object.fromEntries(POLICIES.map((policy) => [policy, measure(FLEET, load, policy, seed)])) as Record<PolicyName, Measured>;
  say(`${trace.name}, seed ${seed}, knee at ${kneeSpeed.toFixed(2)} times the trace's rate; p90 TTFT in ms: ${POLICIES.map((policy) => `${policy} ${byPolicy[policy].p90TtftMs.toFixed(0)}`).join(', ')}`);
  return { trace: trace.name, kind: trace.kind, seed, kneeSpeed, byPolicy };
}

/** By doubling, then halving. */
function findKnee(window: Omit<Load, 'speed'>, seed: number): number {
  const p90At = (speed: number): number => {
    try {
      return measure(FLEET, { ...window, speed }, 'ours', seed).p90TtftMs;
    } catch (error) {
      if (error instanceof AllSlotsTaken) return Infinity;
      throw error;
    }
  };
  const limitMs = KNEE_SLOWDOWN * p90At(IDLE_SPEED);
  let low = IDLE_SPEED;
  let high = 2 * low;
  while (high < SPEED_MAX && p90At(high) <= limitMs) [low, high] = [high, 2 * high];
  while (high / low > 1 + KNEE_PRECISION) {
    const middle = Math.sqrt(low * high);
    if (p90At(middle) <= limitMs) low = middle;
    else high = middle;
  }
  return low;
}

function detailOf({ trace, seed, kneeSpeed, byPolicy }: CaseResult): unknown {
  return {
    trace, seed, kneeSpeed: rounded(kneeSpeed),
    policies: Object.fromEntries(Object.entries(byPolicy).map(([policy, { p50TtftMs, p90TtftMs, hitTokens, promptTokens, workMaxOverMean, inFlightMaxOverMean }]) => [policy, mapped({
      p50TtftMs, p90TtftMs, p90OverRoundRobin: p90TtftMs / byPolicy['round-robin'].p90TtftMs, hitRate: hitTokens / promptTokens, hitShareOfOracle: byPolicy.oracle.hitTokens === 0 ? 1 : hitTokens / byPolicy.oracle.hitTokens, workMaxOverMean, inFlightMaxOverMean,
    })])),
  };
}

const rounded = (value: number): number => Number(value.toFixed(4));
const mapped = <Figures extends Readonly<Record<string, number>>>(figures: Figures): Record<keyof Figures, number> => Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, rounded(value)])) as Record<keyof Figures, number>;
