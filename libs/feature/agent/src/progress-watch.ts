import type { EngineTelemetry } from '@penstock/domain-serving';

/**
 * Whether an engine that has requests in work gets on with them. Its metrics may come from a process that is well while the one that
 * generates hangs: then they say the same again and again. Only engines that say how long tokens take count tokens as they come.
 */
export class ProgressWatch {
  private tokensBefore: number | undefined;

  /** True when no token came since the last look although requests are in work. */
  stands({ running, promptTokensTotal, completionTokensTotal, pace }: EngineTelemetry): boolean {
    const tokens = promptTokensTotal + completionTokensTotal;
    const stands = running > 0 && (pace ?? null) !== null && tokens === this.tokensBefore;
    this.tokensBefore = tokens;
    return stands;
  }
}
