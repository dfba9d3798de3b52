import type { Report, Run } from '../../harness.js';
import { numberIn, readTrace } from '../traces.js';
import { runOpenb, type OpenbResult, type PolicyName } from './protocol.js';

const DEFAULT_TRACE = 'default';

/** The policy to judge, and those that run beside it on the same arrivals. */
const JUDGED: PolicyName = 'penstock';
const BESIDE: readonly PolicyName[] = ['fgd', 'best_fit', 'dot_product', 'random'];

const JUDGED_SEEDS = 10;
const BESIDE_SEEDS = 3;

/** FGD's published mean on the default trace when arrivals reach 130 % of the cluster. */
const DEFAULT_TO_BEAT_PCT = 95.39;

const FGD_POLICY = '06-FGD';

interface TraceRow {
  readonly trace: string;
  readonly publishedFgd: number;
  readonly means: Readonly<Partial<Record<PolicyName, { readonly at100: number; readonly at130: number; readonly seeds: number }>>>;
}

/** The protocol of FGD on all its traces, with the published results as the mark. */
export const run: Run = ({ seed, say }) => {
  const published = publishedMeans();
  const decisions: number[] = [];
  const rows: TraceRow[] = [];
  for (const [trace, publishedFgd] of published) {
    const row = runTrace(trace, publishedFgd, seed, decisions);
    rows.push(row);
    say(`${trace}: ${row.means.penstock?.at130.toFixed(2)} % of GPUs given away, FGD published ${publishedFgd.toFixed(2)}; ${BESIDE.map((policy) => `${policy} ${row.means[policy]?.at130.toFixed(2)}`).join(', ')}`);
  }
  return Promise.resolve(judge(rows, decisions));
};

function judge(rows: readonly TraceRow[], decisions: number[]): Report {
  const below = rows.filter((row) => (row.means.penstock?.at130 ?? 0) < row.publishedFgd).map((row) => row.trace);
  const onDefault = rows.find((row) => row.trace === DEFAULT_TRACE)?.means.penstock?.at130 ?? 0;
  const figures = { default_allocation_pct: onDefault, below_fgd_traces: below, decision_p99_ms: quantile(decisions, 0.99) };
  return { figures, pass: onDefault > DEFAULT_TO_BEAT_PCT && below.length === 0, detail: { traces: rows, decisions: decisions.length, decision_p50_ms: quantile(decisions, 0.5), decision_max_ms: quantile(decisions, 1) } };
}

function runTrace(trace: string, publishedFgd: number, seed: number, decisions: number[]): TraceRow {
  const means: Partial<Record<PolicyName, { at100: number; at130: number; seeds: number }>> = {};
  for (const policy of [JUDGED, ...BESIDE]) {
    const results: OpenbResult[] = [];
    const seeds = policy === JUDGED || trace === DEFAULT_TRACE ? JUDGED_SEEDS : BESIDE_SEEDS;
    for (let index = 0; index < seeds; index += 1) results.push(runOpenb({ trace, policy, seed: seed + index }));
    if (policy === JUDGED) for (const result of results) for (const ms of result.decisionMs) decisions.push(ms);
    means[policy] = { at100: meanPct(results.map((result) => result.allocationAt100)), at130: meanPct(results.map((result) => result.allocationAt130)), seeds };
  }
  return { trace, publishedFgd, means };
}

/** FGD's mean allocation over its seeds at 130 % arrivals, by trace. */
function publishedMeans(): ReadonlyMap<string, number> {
  const values = new Map<string, number[]>();
  for (const row of readTrace('fgd-published-results.csv.gz')) {
    if (row['policy'] !== FGD_POLICY) continue;
    const trace = row['trace'] ?? '';
    values.set(trace, [...(values.get(trace) ?? []), numberIn(row, 'alloc_pct_at_130')]);
  }
  return new Map([...values].sort(([one], [other]) => (one < other ? -1 : 1)).map(([trace, all]) => [trace, all.reduce((sum, value) => sum + value, 0) / all.length]));
}

function meanPct(shares: readonly number[]): number {
  return (shares.reduce((sum, share) => sum + share, 0) / shares.length) * 100;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
