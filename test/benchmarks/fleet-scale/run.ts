import { performance } from 'node:perf_hooks';
import { FleetPlanner, type FleetNode } from '@penstock/domain-placement';
import type { Run } from '../../harness.js';
import { randomFrom } from '../random.js';
import { checkFleet } from './check-fleet.js';
import { buildFleet, Endpoints, type ScaledDemand } from './scenario.js';

/** Fleet sizes; the last one is judged, the others show how the work grows. As many endpoints as GPUs. */
const SIZES = [1_000, 3_000, 10_000];

const CHURN = 1_000;
const CONSOLIDATION_MOVES = 3_000;

const OVER_BOUND_MOST = 0.05;
const SAVED_LEAST = 0.3;

interface SizeReport {
  readonly wantedGpus: number;
  readonly fleetGpus: number;
  readonly endpoints: number;
  readonly gpusInUse: number;
  readonly overBound: number;
  readonly overBoundAfterChurn: number;
  readonly overBoundAfterLoss: number;
  /** After churn and loss, once the gaps were consolidated again. */
  readonly overBoundAfterRepack: number;
  readonly saved: number;
  readonly planMs: number;
  readonly consolidateMs: number;
  readonly moves: number;
  readonly repackMoves: number;
  readonly decisionP50Ms: number;
  readonly decisionP99Ms: number;
  readonly arrivals: number;
  readonly rackLossMs: number;
  readonly movedByLoss: number;
  readonly refused: readonly string[];
  readonly refusedByPlan: number;
  readonly problems: readonly string[];
}

/** A whole fleet packed at once, a thousand arrivals and departures, and one rack lost. */
export const run: Run = async ({ seed, say }) => {
  const reports: SizeReport[] = [];
  for (const size of SIZES) {
    const report = await runSize(size, seed);
    reports.push(report);
    say(
      `${report.fleetGpus} GPUs, ${report.endpoints} endpoints: ${report.gpusInUse} in use, ${percent(report.overBound)} over the bound (${percent(report.overBoundAfterChurn)} after churn, ${percent(report.overBoundAfterRepack)} repacked), ` +
        `${percent(report.saved)} fewer than one model per GPU, planned in ${report.planMs.toFixed(0)} ms, decisions p99 ${report.decisionP99Ms.toFixed(2)} ms, ${report.refused.length} refused`,
    );
    for (const problem of report.problems.slice(0, 10)) say(problem);
  }
  const largest = reports.at(-1) as SizeReport;
  const figures = {
    gpus: largest.fleetGpus,
    cost_over_lower_bound: largest.overBound,
    saved_vs_one_model_per_gpu: largest.saved,
    decision_p99_ms: largest.decisionP99Ms,
    peak_rss_mb: Math.round(process.resourceUsage().maxRSS / 1_024),
    violations: reports.reduce((sum, report) => sum + report.problems.length, 0),
  };
  const pass = figures.violations === 0 && figures.cost_over_lower_bound <= OVER_BOUND_MOST && figures.saved_vs_one_model_per_gpu >= SAVED_LEAST && largest.refusedByPlan === 0;
  return { figures, pass, detail: { sizes: reports } };
};

function runSize(size: number, seed: number): Promise<SizeReport> {
  const nodes = buildFleet(size);
  const endpoints = new Endpoints(randomFrom(seed));
  const demands = endpoints.take(size);
  const planner = new FleetPlanner(nodes);
  const problems: string[] = [];
  const started = performance.now();
  const plan = planner.planAll(demands);
  const planMs = performance.now() - started;
  const consolidating = performance.now();
  const moves = planner.consolidate(CONSOLIDATION_MOVES).length;
  const consolidateMs = performance.now() - consolidating;
  const check = checkFleet(nodes, null, planner.assignments.values());
  problems.push(...check.problems);
  if (Math.abs(check.cost - planner.state.cost()) > 1e-6) problems.push(`the planner counts ${planner.state.cost()} dollars, the checker ${check.cost}`);
  const refused = new Set(plan.refusals.map((refusal) => refusal.endpointId));
  const own = demands.reduce((sum, demand) => sum + (refused.has(demand.endpointId) ? 0 : demand.ownGpus), 0);
  const churn = runChurn(planner, endpoints, demands, randomFrom(seed + 1));
  problems.push(...checkFleet(nodes, null, planner.assignments.values()).problems);
  const overBoundAfterChurn = planner.state.cost() / planner.lowerBound() - 1;
  const loss = loseRack(planner, nodes, seed);
  const overBoundAfterLoss = planner.state.cost() / planner.lowerBound() - 1;
  const repackMoves = planner.consolidate(CONSOLIDATION_MOVES).length;
  problems.push(...checkFleet(nodes, loss.rack, planner.assignments.values()).problems);
  return Promise.resolve({
    wantedGpus: size,
    fleetGpus: nodes.reduce((sum, node) => sum + node.gpus, 0),
    endpoints: size,
    gpusInUse: check.gpusInUse,
    overBound: check.cost / plan.lowerBound - 1,
    overBoundAfterChurn,
    overBoundAfterLoss,
    overBoundAfterRepack: planner.state.cost() / planner.lowerBound() - 1,
    repackMoves,
    saved: 1 - check.gpusInUse / own,
    planMs,
    consolidateMs,
    moves,
    decisionP50Ms: quantile(churn.decisionMs, 0.5),
    decisionP99Ms: quantile(churn.decisionMs, 0.99),
    arrivals: churn.decisionMs.length,
    rackLossMs: loss.ms,
    movedByLoss: loss.moved,
    refused: [...plan.refusals, ...churn.refusals, ...loss.refusals].map(({ endpointId, reason }) => `${endpointId}: ${reason}`),
    refusedByPlan: plan.refusals.length,
    problems,
  });
}

/** In turn one endpoint comes and a random one goes. */
function runChurn(planner: FleetPlanner, endpoints: Endpoints, demands: readonly ScaledDemand[], next: () => number): { decisionMs: readonly number[]; refusals: { endpointId: string; reason: string }[] } {
  const present = demands.map((demand) => demand.endpointId);
  const decisionMs: number[] = [];
  const refusals: { endpointId: string; reason: string }[] = [];
  for (const arrival of endpoints.take(CHURN)) {
    const [gone = ''] = present.splice(Math.floor(next() * present.length), 1);
    planner.depart(gone);
    const started = performance.now();
    const outcome = planner.arrive(arrival);
    decisionMs.push(performance.now() - started);
    if ('reason' in outcome) refusals.push(outcome);
    else present.push(arrival.endpointId);
  }
  return { decisionMs, refusals };
}

function loseRack(planner: FleetPlanner, nodes: readonly FleetNode[], seed: number): { rack: string; ms: number; moved: number; refusals: readonly { endpointId: string; reason: string }[] } {
  const racks = [...new Set(nodes.map((node) => node.failureDomain))];
  const rack = racks[seed % racks.length] as string;
  const started = performance.now();
  const { moved, refusals } = planner.loseDomain(rack);
  return { rack, ms: performance.now() - started, moved: moved.length, refusals };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
