import type { EngineProbe, EngineTarget, EngineTelemetry, ProbeResult } from '@penstock/domain-serving';
import type { Clock } from '@penstock/kernel';

interface Sample {
  readonly atMs: number;
  readonly telemetry: Promise<EngineTelemetry | undefined>;
}

/** Replicas that share an engine have the same load: what was asked within this time is not asked again. */
const FRESH_MS = 500;
/** Engines beyond this many are asked each time. */
const KEPT_MAX = 1_000;

/** Asks each engine once for all replicas that share it. */
export class SharedTelemetry implements EngineProbe {
  private readonly samples = new Map<string, Sample>();

  constructor(private readonly probe: EngineProbe, private readonly clock: Clock) {}

  generate(target: EngineTarget, timeoutMs: number): Promise<ProbeResult> {
    return this.probe.generate(target, timeoutMs);
  }

  telemetry(target: EngineTarget, timeoutMs: number): Promise<EngineTelemetry | undefined> {
    const now = this.clock.now();
    const known = this.samples.get(target.url);
    if (known !== undefined && now - known.atMs < FRESH_MS) return known.telemetry;
    for (const [url, { atMs }] of this.samples) if (now - atMs >= FRESH_MS) this.samples.delete(url);
    const telemetry = this.probe.telemetry(target, timeoutMs);
    if (this.samples.size < KEPT_MAX) this.samples.set(target.url, { atMs: now, telemetry });
    return telemetry;
  }
}
