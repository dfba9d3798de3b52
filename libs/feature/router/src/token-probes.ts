import type { EngineProbe } from '@penstock/domain-serving';
import type { TokenProbe } from '@penstock/domain-routing';
import type { Logger } from '@penstock/kernel';
import type { EndpointDesk } from './endpoint-desk.js';
import type { RouterMetrics } from './router-metrics.js';

/** A probe that takes longer failed. */
const PROBE_TIMEOUT_MS = 10_000;
/** Probes on their way at once; the others wait for the next look. */
const PROBES_MAX = 32;

export interface TokenProbesParts {
  readonly probe: Pick<EngineProbe, 'generate'>;
  readonly metrics: RouterMetrics;
  readonly logger: Logger;
}

/**
 * Finds out whether replicas with an open circuit work again, by one token that the platform asks for on nobody's behalf and nobody
 * pays for: a health route answers while an engine hangs, and no tenant's request is spent on finding out.
 */
export class TokenProbes {
  private underWay = 0;

  constructor(private readonly parts: TokenProbesParts) {}

  /** Sends what is due. */
  look(desks: Iterable<EndpointDesk>): void {
    for (const desk of desks) {
      if (this.underWay >= PROBES_MAX) return;
      for (const probe of desk.takeProbes()) void this.send(desk, probe);
    }
  }

  private async send(desk: EndpointDesk, { replicaId, url, engine, servedModel }: TokenProbe): Promise<void> {
    const { probe, metrics, logger } = this.parts;
    this.underWay += 1;
    try {
      const result = await probe.generate({ kind: engine, url, servedModel }, PROBE_TIMEOUT_MS);
      metrics.probed(result.kind);
      if (result.kind === 'failed') logger.info({ replicaId, endpointId: desk.endpointId, reason: result.reason }, 'a replica failed its probe');
      desk.probeEnded(replicaId, result.kind === 'answered' ? 'ok' : 'engine-failed');
    } catch (error) {
      logger.error({ err: error, replicaId, endpointId: desk.endpointId }, 'a probe could not be sent');
      desk.probeEnded(replicaId, 'aborted');
    } finally {
      this.underWay -= 1;
    }
  }
}
