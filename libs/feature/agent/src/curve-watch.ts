import { CurveMeter, replicaProfileDecider, replicaProfileRef, saysNews, type CurvePoint } from '@penstock/domain-lifecycle';
import type { EngineTelemetry } from '@penstock/domain-serving';
import type { FleetReporter } from './fleet-reporter.js';

/** Measures throughput and latency of one running engine, and says them to the log: seldom, and only what is new. */
export class CurveWatch {
  private readonly meter = new CurveMeter();
  private told: readonly CurvePoint[] = [];
  private toldAtMs: number;

  /** The first word comes one interval after `sinceMs`, so that it says more than the first class of load. */
  constructor(private readonly replicaId: string, private readonly reporter: FleetReporter, private readonly intervalMs: number, sinceMs: number) {
    this.toldAtMs = sinceMs;
  }

  /** Does nothing for an engine that does not say how long its tokens take. A word that the log does not take is said again later. */
  async observe({ running, waiting, promptTokensTotal, completionTokensTotal, pace, kvTokens }: EngineTelemetry, nowMs: number): Promise<void> {
    if (pace === undefined || pace === null) return;
    this.meter.observe({ ...pace, atMs: nowMs, atOnce: running + waiting, promptTokens: promptTokensTotal, completionTokens: completionTokensTotal });
    if (nowMs - this.toldAtMs < this.intervalMs) return;
    const points = this.meter.points();
    if (!saysNews(this.told, points)) return;
    this.toldAtMs = nowMs;
    const isTold = await this.reporter.tell(replicaProfileDecider, replicaProfileRef(this.replicaId), { kind: 'add-curve', points, kvTokens: kvTokens ?? null }).then(() => true, () => false);
    if (isTold) this.told = points;
  }
}
