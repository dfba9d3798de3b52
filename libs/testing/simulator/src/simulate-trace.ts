import type { EngineMetrics, EngineParams } from '@penstock/domain-engine-model';
import { simulateFleetTrace, type FleetTraceOutcome, type TraceRequest } from './simulate-fleet-trace.js';

export interface TraceOutcome extends Omit<FleetTraceOutcome, 'metrics'> {
  readonly metrics: EngineMetrics;
}

/** Runs a trace through one engine in virtual time: what would take an hour takes a moment, and always the same. */
export function simulateTrace(requests: readonly TraceRequest[], params: EngineParams): TraceOutcome {
  const { metrics, ...outcome } = simulateFleetTrace(requests, [params], { choose: () => 0 });
  const [own] = metrics;
  if (own === undefined) throw new Error('a fleet of one engine has the metrics of one engine');
  return { ...outcome, metrics: own };
}
