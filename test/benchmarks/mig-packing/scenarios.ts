import { bestOptions, MIG_GEOMETRIES, type MigDemand, type MigGeometry, type MigMeasurement } from '@penstock/domain-placement';
import { numberIn, readTrace } from '../traces.js';

export const SCENARIOS = ['S1', 'S2', 'S3', 'S4', 'S5', 'S6'] as const;

/** ParvaGPU's rule, from its source: a setting is allowed when its latency is under 0.9 of half the objective. */
const OBJECTIVE_SHARE = 0.9 / 2;

/** The profiles that ParvaGPU measured, by their number of compute slices. */
const PROFILES: ReadonlyMap<number, string> = new Map([
  [1, '1g.10gb'],
  [2, '2g.20gb'],
  [3, '3g.40gb'],
  [4, '4g.40gb'],
  [7, '7g.80gb'],
]);

/** The GPU of the measurements. */
export function a100(): MigGeometry {
  const geometry = MIG_GEOMETRIES.find((one) => one.gpuType === 'A100-80GB');
  if (geometry === undefined) throw new Error('The catalogue has no A100-80GB.');
  return geometry;
}

export interface Scenario {
  readonly name: string;
  readonly demands: readonly MigDemand[];
}

/** The six scenarios; `times` multiplies every rate. */
export function readScenario(name: string, times = 1): Scenario {
  const measured = readMeasurements();
  const demands = readTrace('parvagpu-scenarios.csv')
    .filter((row) => row['scenario'] === name)
    .map((row) => {
      const model = row['model'] ?? '';
      const limitMs = numberIn(row, 'slo_ms') * OBJECTIVE_SHARE;
      return { id: model, rate: numberIn(row, 'request_rate_rps') * times, options: bestOptions(measured.get(model) ?? [], limitMs) };
    });
  if (demands.length === 0) throw new Error(`The scenario ${name} has no rows.`);
  return { name, demands };
}

export function readMeasurements(): ReadonlyMap<string, readonly MigMeasurement[]> {
  const byModel = new Map<string, MigMeasurement[]>();
  for (const row of readTrace('parvagpu-profiles.csv.gz')) {
    const profile = PROFILES.get(numberIn(row, 'mig_gpcs'));
    if (profile === undefined) continue;
    const processes = numberIn(row, 'procs');
    const measurement = { profile, batch: numberIn(row, 'batch'), processes, rate: numberIn(row, 'throughput_per_proc_rps') * processes, latencyMs: numberIn(row, 'latency_s') * 1_000 };
    byModel.set(row['model'] ?? '', [...(byModel.get(row['model'] ?? '') ?? []), measurement]);
  }
  return byModel;
}
