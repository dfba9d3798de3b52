import type { PackedGpu } from '@penstock/domain-placement';
import { numberIn, readTrace } from '../traces.js';

/**
 * What an A100 with 80 GB allows, written down again from NVIDIA's MIG user guide, so that a mistake in the planner's
 * own tables cannot hide itself: where an instance may begin, how many memory slices it takes, how many compute slices.
 */
const A100: Readonly<Record<string, { readonly gpcs: number; readonly begins: readonly number[]; readonly length: number }>> = {
  '1g.10gb': { gpcs: 1, begins: [0, 1, 2, 3, 4, 5, 6], length: 1 },
  '2g.20gb': { gpcs: 2, begins: [0, 2, 4], length: 2 },
  '3g.40gb': { gpcs: 3, begins: [0, 4], length: 4 },
  '4g.40gb': { gpcs: 4, begins: [0], length: 4 },
  '7g.80gb': { gpcs: 7, begins: [0], length: 8 },
};
const MEMORY_SLICES = 8;
const COMPUTE_SLICES = 7;

/** Everything wrong with a packing of a scenario, judged from the raw traces alone. */
export function checkPacking(scenario: string, times: number, gpus: readonly PackedGpu[]): readonly string[] {
  const problems = gpus.flatMap((gpu, index) => checkGpu(gpu).map((problem) => `GPU ${index}: ${problem}`));
  const rows = readTrace('parvagpu-scenarios.csv').filter((row) => row['scenario'] === scenario);
  const measured = measuredSettings();
  for (const row of rows) {
    const model = row['model'] ?? '';
    let rate = 0;
    for (const instance of gpus.flat().filter((one) => one.demand === model)) {
      const setting = measured.get([model, A100[instance.profile]?.gpcs, instance.option.batch, instance.option.processes].join());
      if (setting === undefined) problems.push(`${model} runs at a setting that nobody measured`);
      else if (!(setting.latencyS * 1_000 < (0.9 * numberIn(row, 'slo_ms')) / 2)) problems.push(`${model} misses its objective on ${instance.profile}`);
      else rate += setting.rate;
    }
    const wanted = numberIn(row, 'request_rate_rps') * times;
    if (rate < wanted * (1 - 1e-6)) problems.push(`${model} gets ${rate} of ${wanted} requests per second`);
  }
  const known = new Set(rows.map((row) => row['model']));
  for (const instance of gpus.flat()) if (!known.has(instance.demand)) problems.push(`${instance.demand} is not in the scenario`);
  return problems;
}

function checkGpu(gpu: PackedGpu): readonly string[] {
  const problems: string[] = [];
  const taken = new Set<number>();
  let compute = 0;
  for (const { profile, start } of gpu) {
    const rule = A100[profile];
    if (rule === undefined || !rule.begins.includes(start)) {
      problems.push(`${profile} at ${start} is not legal`);
      continue;
    }
    compute += rule.gpcs;
    for (let slice = start; slice < start + rule.length; slice += 1) {
      if (slice >= MEMORY_SLICES || taken.has(slice)) problems.push(`${profile} at ${start} overlaps`);
      taken.add(slice);
    }
  }
  if (compute > COMPUTE_SLICES) problems.push(`${compute} compute slices`);
  return problems;
}

function measuredSettings(): ReadonlyMap<string, { readonly rate: number; readonly latencyS: number }> {
  return new Map(
    readTrace('parvagpu-profiles.csv.gz').map((row) => [
      [row['model'], numberIn(row, 'mig_gpcs'), numberIn(row, 'batch'), numberIn(row, 'procs')].join(),
      { rate: numberIn(row, 'throughput_per_proc_rps') * numberIn(row, 'procs'), latencyS: numberIn(row, 'latency_s') },
    ]),
  );
}
